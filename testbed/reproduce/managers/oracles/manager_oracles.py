"""Our managers beside the simulators of their authors, on the same traces.

The traces stay where the user has them (``--traces DIR``, a folder with clones of the artifacts). Without a folder the
rows are those of :mod:`.small_traces`, on which the same simulators were run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Final

from testbed.errors import BadInputError
from testbed.progress import Progress
from testbed.reproduce.managers.oracles import muri_oracle, pollux_oracle, small_traces
from testbed.reproduce.managers.oracles.known_results import ARTIFACTS, PUBLISHED, SMALL, KnownResult
from testbed.reproduce.paper_experiment import PaperRow, Settings
from topologies.limits import one_line
from workloads.managers.account import JobOutcome

Finder = Callable[[KnownResult], Path | None]
PLACES: Final = ("", "*/", "*/*/")
"""Where in the folder the artifacts may be."""


def reproduce(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per trace and policy; a :class:`BadInputError` if the folder has none of the traces."""
    if settings.trace is None:
        with tempfile.TemporaryDirectory(prefix="oracles-") as scratch:
            small = _small(Path(scratch))
            return _rows(SMALL, lambda known: small[known.file], progress, small_traces.SERVERS)
    folder = settings.trace
    if not folder.is_dir():
        raise BadInputError(f"--traces {folder}: not a folder, expected one with clones of {_clones()}")
    rows = _rows(PUBLISHED, lambda known: found_in(folder, known), progress, pollux_oracle.SERVERS)
    if not any(row.here for row in rows):
        raise BadInputError(f"--traces {folder}: none of the traces is there, expected clones of {_clones()}")
    return rows


def found_in(folder: Path, known: KnownResult) -> Path | None:
    """Return the trace of a result in a folder that is the artifact, or has it one or two levels below."""
    places = (path for place in PLACES for path in sorted(folder.glob(f"{place}{known.file}")))
    return next(places, None)


def _small(folder: Path) -> Mapping[str, Path]:
    """Name -> file of each small trace."""
    muri = {f"muri-{seed}": small_traces.write_muri(folder / f"muri-{seed}.csv", seed) for seed in small_traces.SEEDS}
    pollux = {f"small-{seed}": small_traces.write_pollux(folder, seed) for seed in small_traces.SEEDS}
    return {**muri, **pollux}


def _rows(results: Sequence[KnownResult], find: Finder, progress: Progress, servers: int) -> Sequence[PaperRow]:
    rows: list[PaperRow] = []
    progress.phase("managers", len(results))
    for place, known in enumerate(results, 1):
        path = find(known)
        here = {} if path is None else {**compared(known, played(known, path, servers))}
        if path is not None and known.policy == "optimus":
            here["exact_s"] = compared(known, played(known, path, servers, exact=True))["jct_s"]
        missing = f"not found: {known.file}; " if path is None else ""
        paper = {"jct_s": known.jct_s, "jobs": float(known.jobs)}
        rows.append(PaperRow(known.label, paper, here, f"{missing}{ARTIFACTS[known.artifact].named}; {known.settings}"))
        progress.advance_to(place)
    return rows


def played(known: KnownResult, path: Path, servers: int, exact: bool = False) -> Sequence[JobOutcome]:
    """Return the outcomes of a trace under our manager; a trace that cannot be read is a :class:`BadInputError`.

    ``exact``: Optimus is told what is really left of a job, not what the artifact tells it.
    """
    try:
        if known.artifact == "muri":
            return muri_oracle.play(path, known.policy)
        information = pollux_oracle.Information(exact, known.packed)
        return pollux_oracle.play(path, known.policy, servers, known.start_s, information)
    except ValueError as error:
        raise BadInputError(one_line(str(error))) from error


def compared(known: KnownResult, outcomes: Sequence[JobOutcome]) -> Mapping[str, float]:
    """Mean completion time here, its difference from the artifact's as a share, and how many jobs ended."""
    ended = [each.jct_s for each in outcomes if each.jct_s is not None]
    mean_s = fmean(ended) if ended else float("nan")
    return {"jct_s": mean_s, "difference": mean_s / known.jct_s - 1, "jobs": float(len(ended))}


def _clones() -> str:
    return " and ".join(each.named for each in ARTIFACTS.values())
