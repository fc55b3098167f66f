"""What every experiment takes and gives, and how it is found by name."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol, TypeVar, cast

from testbed.errors import EXIT_OK, BadInputError
from testbed.progress import Progress
from testbed.reproduce.process_pool import started

_PACKAGE: Final = "testbed.reproduce.experiments"
_CHUNK: Final = 5
OUT: Final = Path("runs") / "reproduce"

Result = TypeVar("Result")


@dataclass(frozen=True)
class Settings:
    """What the user may choose: how many cases, which draw of them, how many processes.

    Of emulated experiments: how many hash ``seeds``, from ``seed`` on; ``only`` these rows (all if empty); ``out``,
    where runs are kept; ``redo``, whether kept runs that are not ``ok`` are made again. Of those that replay a
    trace: the ``trace`` (None: a synthetic one) and how many ``days`` of it (None: all).
    """

    cases: int
    seed: int = 1
    processes: int = 1
    seeds: int = 0
    only: tuple[str, ...] = ()
    out: Path = OUT
    redo: bool = False
    trace: Path | None = None
    days: float | None = None


@dataclass(frozen=True)
class PaperRow:
    """One line of the result: the ``paper``'s numbers and those found ``here``, by the same keys.

    ``status`` is the exit status that the row asks for: not 0 where a run failed or is not believable.
    """

    label: str
    paper: Mapping[str, float] = field(default_factory=dict)
    here: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    status: int = EXIT_OK


@dataclass(frozen=True)
class Column:
    """A column of the printed table: which number, its head, and how it is written (a format of one number)."""

    key: str
    title: str
    form: Callable[[float], str]
    paper: bool = False


class PaperExperiment(Protocol):
    """What a module under :mod:`testbed.reproduce.experiments` offers.

    ``CASES`` is 0 where nothing is generated. Emulated experiments also have ``SEEDS``: see :func:`seeds_of`;
    those that replay a trace ``REPLAYS``.
    """

    SUMMARY: str
    SOURCE: str
    COLUMNS: Sequence[Column]
    CASES: int
    run: Callable[[Settings, Progress], Sequence[PaperRow]]


def names() -> tuple[str, ...]:
    """The names of all experiments, in alphabetical order."""
    package = import_module(_PACKAGE)
    return tuple(sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(package.__path__)))


def find(name: str) -> PaperExperiment:
    """Return the experiment called ``name``; :class:`~testbed.errors.BadInputError` if there is none."""
    if name not in names():
        raise BadInputError(f"unknown experiment '{name}', expected one of: {', '.join(names())}")
    return cast(PaperExperiment, import_module(f"{_PACKAGE}.{name.replace('-', '_')}"))


def seeds_of(experiment: PaperExperiment) -> int:
    """Return how many hash seeds ``experiment`` emulates unless told otherwise; 0 if it emulates nothing."""
    return int(getattr(experiment, "SEEDS", 0))


def replays(experiment: PaperExperiment) -> bool:
    """Return whether ``experiment`` replays a trace."""
    return bool(getattr(experiment, "REPLAYS", False))


def each_case(make: Callable[[int, int], Result], settings: Settings, progress: Progress) -> list[Result]:
    """Return ``make(seed, index)`` for every case, in order, worked on by ``settings.processes`` processes."""
    count, seeds = settings.cases, [settings.seed] * settings.cases
    progress.phase(f"{count} cases", count)
    if settings.processes == 1:
        return _counted(map(make, seeds, range(count)), progress)
    with started(settings.processes, lambda pool: pool.map(make, seeds, range(count), chunksize=_CHUNK)) as results:
        return _counted(results, progress)


def _counted(results: Iterable[Result], progress: Progress) -> list[Result]:
    done: list[Result] = []
    for result in results:
        done.append(result)
        progress.advance_to(len(done))
    return done
