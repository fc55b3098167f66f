"""The points of a sweep, worked off: what is kept is taken, the rest is made, each outcome kept as it comes."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from testbed.errors import EXIT_BAD_INPUT, EXIT_CANNOT, EXIT_FAILED, BadInputError, CannotRunError, TestbedError
from testbed.progress import Progress
from testbed.sweep.store import Store
from testbed.sweep.values import PointOutcome, Runner, SweepPoint, outcome_of

ERROR_LOG: Final = "error.log"
_ENDS_ALL: Final[Mapping[int, type[TestbedError]]] = {EXIT_BAD_INPUT: BadInputError, EXIT_CANNOT: CannotRunError}
"""What one point is told here, all others would be told too: no root, another emulation, no place to write."""

Work = Iterable[tuple[SweepPoint, Path]]
"""Made as it is taken: the folder of a point is prepared when its turn comes."""
Execute = Callable[[Work], Iterator[tuple[SweepPoint, PointOutcome] | None]]
"""Points and their folders -> each with its outcome as it ends, and None about once a second in between."""

Executor = AbstractContextManager[Execute]


def kept(points: Sequence[SweepPoint], store: Store) -> dict[SweepPoint, PointOutcome]:
    """Those points that need no rerun."""
    found = ((point, store.kept(point)) for point in points)
    return {point: outcome for point, outcome in found if outcome is not None}


def work_off(
    points: Sequence[SweepPoint],
    store: Store,
    executor: Executor,
    progress: Progress,
    found: MutableMapping[SweepPoint, PointOutcome],
) -> None:
    """Make every one of ``points`` that is not in ``found``, and put it there as soon as it has ended.

    A run that fails is named and does not end the others. Raises ``CannotRunError`` or ``BadInputError`` where the
    others would meet the same; ``KeyboardInterrupt`` passes through. In both cases ``found`` has what was finished.
    """
    todo = [point for point in points if point not in found]
    if not todo:
        return
    work = ((point, store.prepare(point)) for point in todo)
    with executor as execute, progress:
        progress.phase(f"{len(todo)} of {len(points)} points", len(todo))
        done = 0
        for ended in execute(work):
            if ended is not None:
                done += 1
                _take(*ended, store, found)
            progress.advance_to(done, f"{done} of {len(todo)} done")


def _take(
    point: SweepPoint, outcome: PointOutcome, store: Store, found: MutableMapping[SweepPoint, PointOutcome]
) -> None:
    store.keep(point, outcome)
    found[point] = outcome
    if outcome.status in _ENDS_ALL:
        raise _ENDS_ALL[outcome.status](f"{point.name}: {outcome.problem}")
    if outcome.problem:
        print(f"{point.name}: {outcome.problem}", file=sys.stderr)


def attempt(runner: Runner, point: SweepPoint, folder: Path) -> PointOutcome:
    """Run ``point``; whatever goes wrong is an outcome too, a traceback goes into the point's folder."""
    try:
        return runner(point, folder)
    except TestbedError as error:
        return PointOutcome(problem="; ".join(str(error).splitlines()), status=error.exit_status)
    except Exception as error:
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return PointOutcome(problem=f"{said}; details in {_log(error, folder)}", status=EXIT_FAILED)


def _log(error: Exception, folder: Path) -> str:
    target = folder / ERROR_LOG
    try:
        target.write_text("".join(traceback.format_exception(error)), "utf-8")
    except OSError:
        return "no file, it cannot be written"
    return str(target)


@dataclass
class PointRunner:
    """Runs points as ``testbed run`` would. Those that differ only in the seed have one scale: that of the first.

    ``made``: scenario, engine and overrides -> the directory of a run of them that this process has made.
    """

    made: dict[tuple[str, str, tuple[str, ...]], Path] = field(default_factory=dict)

    def __call__(self, point: SweepPoint, folder: Path) -> PointOutcome:
        """Run ``point``, with its run directory under ``folder``."""
        from testbed.api import run_scenario

        same = (point.scenario, point.engine, tuple(point.overrides))
        result = run_scenario(
            point.scenario,
            engine=point.engine,
            overrides=point.overrides,
            seed=point.seed,
            out=folder,
            allow_degraded=True,
            index=False,
            scale_of=self.made.get(same),
        )
        if point.engine == "emulation":
            self.made.setdefault(same, result.directory)
        return outcome_of(result.summary, result.directory.name)
