"""Replays that are kept and reused: one trace on one fabric under one scheduler and one placement.

A result is in ``OUT/replays/`` under the fingerprint of everything that determines it, the code that computes it
included; so replays that finished before an interruption are not repeated, and none of other code is reused.
"""

from __future__ import annotations

import hashlib
import json
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSequence, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any, Final

from controller.schedulers.registry import create
from testbed.engines.replay.inputs import TraceJobs, clos_of_the_paper, double_sided_of_the_paper, requests_of
from testbed.engines.replay.manager_adapter import ManagedPlacing
from testbed.engines.replay.outcome import Replayed, manager_metrics
from testbed.engines.replay.replay import Replay
from testbed.errors import BadInputError
from testbed.fluid.numerical_settings import NUMERICAL_SETTINGS
from testbed.machine.distribution import sources_digest
from testbed.machine.process_pool import started
from testbed.progress import Progress
from testbed.reproduce.paper_experiment import Settings
from topologies.fabric import Fabric
from workloads.managers.catalogue import named_manager
from workloads.managers.manager import Manager
from workloads.managers.registry import manager
from workloads.traces.registry import read_trace
from workloads.traces.synthetic import ELASTIC_JOBS, lingjun_like
from workloads.traces.trace import Trace, window
from workloads.whole_file import write_whole

DAY_S: Final = 86400.0
POLL_S: Final = 1.0
_SHARES: Final[list[MutableSequence[float]]] = []
"""In a worker process: the completed share of each replay, in memory shared with the parent."""
FABRICS: Final = {"clos": clos_of_the_paper, "double-sided": double_sided_of_the_paper}
_COMPUTED_BY: Final = ("topologies", "workloads", "controller", "testbed.engines", "testbed.fluid")

RELAXED: Final = "relaxed"
"""The manager whose placer gives up locality with a probability."""

Result = Mapping[str, Any]
Report = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Cell:
    """One replay. ``trace``: a path, empty for the synthetic trace that ``seed`` draws; ``days`` of it.

    ``manager`` is one of :data:`workloads.managers.catalogue.MANAGERS`. ``reference``: a recorded
    duration is that of iterations on adjacent GPUs, so that a worse placement takes longer; otherwise that of
    iterations on the first placement. ``crowded``: every job of the synthetic trace has GPUs and is
    submitted as drawn, without a limit on concurrency: about twice the load. ``elastic``: Lyra's share of the
    synthetic trace's jobs is elastic (:func:`workloads.traces.synthetic.with_elastic_jobs`). ``numerics`` is one of
    :data:`testbed.fluid.numerical_settings.NUMERICAL_SETTINGS`. ``relaxed``: the probability that a job gives up
    locality, for the manager :data:`RELAXED`, which needs it. ``volume``: a factor on what every job sends.
    ``channels``: connections per pair of ports. ``options``: the scheduler's, pairs of name and value.
    """

    fabric: str
    scheduler: str
    manager: str = "none"
    seed: int = 1
    trace: str = ""
    days: float = 14.0
    jump: bool = True
    reference: bool = False
    crowded: bool = False
    elastic: bool = False
    numerics: str = "standard"
    relaxed: float | None = None
    volume: float = 1.0
    channels: int = 1
    options: tuple[tuple[str, str], ...] = ()

    @property
    def label(self) -> str:
        """Its name in messages."""
        return f"{self.fabric}, {self.manager}, {self.scheduler}"


def cell(settings: Settings, fabric: str, scheduler: str, manager: str = "none") -> Cell:
    """Return the cell for ``settings``."""
    trace = "" if settings.trace is None else str(settings.trace)
    return Cell(fabric, scheduler, manager, settings.seed, trace, settings.days)


def trace_of(cell: Cell) -> Trace:
    """Return the trace of a cell, cut to its days; ``BadInputError`` if a file has no job in them."""
    whole = read_trace(Path(cell.trace)) if cell.trace else _synthetic(cell)
    return first_days(whole, cell.days, cell.trace)


def first_days(whole: Trace, days: float, path: str) -> Trace:
    """Cut a trace to its first days; ``BadInputError`` if it is from the file ``path`` and has no job in them."""
    found = window(whole, 0.0, days * DAY_S)
    if path and not found.jobs:
        raise BadInputError(f"{path}: no job that uses GPUs in its first {days:g} days, expected some (--days)")
    return found


def trace_note(trace: Trace) -> str:
    """Name the trace behind the rows."""
    return f"{trace.label}, {len(trace.jobs)} jobs"


def _synthetic(cell: Cell) -> Trace:
    options: dict[str, Any] = {"gpu_share": 1.0, "keep_peaks": False} if cell.crowded else {}
    return lingjun_like(cell.seed, elastic_jobs=ELASTIC_JOBS if cell.elastic else 0.0, **options)


def replayed(cell: Cell, report: Report | None = None) -> Replayed:
    """Run the replay of ``cell``; ``report`` receives the completed share of its time."""
    fabric: Fabric = FABRICS[cell.fabric]()
    trace, until_s = trace_of(cell), cell.days * DAY_S
    jobs = TraceJobs(fabric, cell.volume, cell.channels)
    placing = ManagedPlacing(_manager(cell), fabric, jobs.stage_times)
    requests = requests_of(trace, cell.seed)
    replay = Replay(
        fabric,
        create(cell.scheduler, dict(cell.options), cell.seed),
        placing,
        requests,
        jobs.build,
        seed=cell.seed,
        until_s=until_s,
        jump=cell.jump,
        numerics=NUMERICAL_SETTINGS[cell.numerics],
        reference_s=jobs.reference_s if cell.reference else None,
    )
    return replay.run(None if report is None else lambda now_s: report(now_s / until_s))


def _manager(cell: Cell) -> Manager:
    if cell.relaxed is None:
        return named_manager(cell.manager, cell.seed)
    return manager("relaxed", options={"placer": {"probability": cell.relaxed}}, seed=cell.seed)


def result_of(cell: Cell, report: Report | None = None) -> Result:
    """Run the replay of ``cell`` and return its numbers, JSON-ready; CPU time and memory are those of this process."""
    began = time.process_time()
    done = replayed(cell, report)
    ended = [job for job in done.jobs if job.jct_s is not None]
    means = done.series.means()
    columns = dict(zip(done.series.columns, means.T, strict=True))
    jobs, allocated, work = columns["jobs"], columns["allocated"], done.totals.work
    return {
        "gpu_utilization": done.gpu_utilization,
        "time_mean": done.time_mean,
        "busy_share": done.busy_share,
        "jobs": len(ended) + done.running + done.waiting,
        "finished": len(ended),
        "running": done.running,
        "waiting": done.waiting,
        "notes": list(done.notes),
        "refused": dict(done.refused),
        "mean_jct_s": fmean(job.jct_s or 0.0 for job in ended) if ended else 0.0,
        "mean_stretch": fmean(_stretch(job.end_s, job.start_s, job.alone_s) for job in ended) if ended else 1.0,
        "mean_jobs": float(jobs.mean()),
        "mean_gpus": float(allocated.mean()),
        "gpus": done.gpus,
        "sharing_jobs": _mean_share(columns["sharing_jobs"], jobs),
        "sharing_gpus": _mean_share(columns["sharing_gpus"], allocated),
        "sharing_pcie_jobs": _mean_share(columns["sharing_pcie_jobs"], jobs),
        "manager": manager_metrics(done),
        "settled": done.totals.settled,
        "work": {part: {"times": times, "cpu_s": work.cpu_s[part]} for part, times in work.times.items()},
        "cpu_s": time.process_time() - began,
        "peak_bytes": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "bin_s": done.series.bin_s,
        "columns": list(done.series.columns),
        "series": means.round(6).tolist(),
    }


def _stretch(end_s: float | None, start_s: float | None, alone_s: float) -> float:
    return ((end_s or 0.0) - (start_s or 0.0)) / alone_s


def _mean_share(part: Iterable[float], whole: Iterable[float]) -> float:
    """The time average of the momentary ratio, over the time in which ``whole`` is not 0."""
    ratios = [some / all_ for some, all_ in zip(part, whole, strict=True) if all_ > 0]
    return float(fmean(ratios)) if ratios else 0.0


def results(cells: Sequence[Cell], settings: Settings, progress: Progress) -> dict[Cell, Result]:
    """Return the result of each cell, kept or computed by ``settings.processes`` processes."""
    found = {each: kept for each in cells if (kept := _kept(settings.out, each)) is not None}
    missing = [each for each in dict.fromkeys(cells) if each not in found]
    through = len(found)
    progress.phase(f"{len(cells)} replays, {through} kept from before", len(cells))
    progress.advance_to(through)
    for each, result in _computed(missing, settings.processes, _counted_from(through, progress.advance_to)):
        _keep(settings.out, each, result)
        found[each] = result
    return {each: found[each] for each in cells}


def _computed(cells: Sequence[Cell], processes: int, report: Report) -> Iterator[tuple[Cell, Result]]:
    """Yield each cell with its result as it completes; ``report`` receives the number complete, with fractions."""
    if processes == 1 or len(cells) < 2:
        for place, each in enumerate(cells):
            yield each, result_of(each, _counted_from(place, report))
        return
    shares = get_context("spawn").Array("d", len(cells), lock=False)
    with started(
        processes,
        lambda pool: {pool.submit(_compute_in_process, each, place): each for place, each in enumerate(cells)},
        fresh=True,
        prepare=partial(_take_shares, shares),
    ) as tasks:
        left = set(tasks)
        while left:
            done, left = wait(left, POLL_S, FIRST_COMPLETED)
            report(sum(shares))
            yield from ((tasks[task], task.result()) for task in done)


def _counted_from(before: int, report: Report) -> Report:
    return lambda share: report(before + share)


def _take_shares(shares: MutableSequence[float]) -> None:
    _SHARES.append(shares)


def _compute_in_process(cell: Cell, place: int) -> Result:
    found = result_of(cell, lambda share: _SHARES[0].__setitem__(place, share))
    _SHARES[0][place] = 1.0
    return found


def _file(out: Path, cell: Cell) -> Path:
    text = json.dumps([sources_digest(*_COMPUTED_BY), asdict(cell), _content(cell)], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return out / "replays" / f"{cell.fabric}-{cell.manager}-{cell.scheduler}-{digest}.json"


def _content(cell: Cell) -> str:
    """Hash of the trace, a file or the files in a folder: others of the same name are another trace."""
    path = Path(cell.trace)
    if not cell.trace or not path.exists():
        return ""
    digest = hashlib.sha256()
    for file in [path] if path.is_file() else sorted(each for each in path.iterdir() if each.is_file()):
        with file.open("rb") as content:
            own = hashlib.file_digest(content, "sha256").hexdigest()
        digest.update(f"{file.name} {own}\n".encode())
    return digest.hexdigest()


def _kept(out: Path, cell: Cell) -> Result | None:
    try:
        result: Result = json.loads(_file(out, cell).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return result


def _keep(out: Path, cell: Cell, result: Result) -> None:
    path = _file(out, cell)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(result))
