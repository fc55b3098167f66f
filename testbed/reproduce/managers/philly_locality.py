"""Locality on emulated packets: three scenarios, one run per seed.

Only two things are calibrated, in the scenario files: the job on 2 servers to its published utilisation, and each
model's step on four servers. Everything else is predicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from types import MappingProxyType
from typing import Any, Final

from testbed.errors import BadInputError
from testbed.progress import Progress
from testbed.reproduce.kept_runs import ECMP, Execute, Runs, Task, emulate, exit_status, not_ok
from testbed.reproduce.paper_experiment import PaperRow, Settings

SERVERS, SPLIT, SPREAD = "philly-servers.yaml", "philly-split.yaml", "spread.yaml"

UTILIZATION: Final[Mapping[str, tuple[str, float | None]]] = MappingProxyType(
    {
        "16 GPUs on 2 servers": ("on-2", 0.4366),
        "16 GPUs on 8 servers": ("on-8", 0.2856),
        "16 GPUs on 8 servers, four jobs": ("crowd", None),
    }
)
"""Row -> job of the scenario (or a prefix of several jobs' names), and the utilisation that Philly reports."""
SLOWEST_SPLIT: Final = 7.0
"""Philly: jobs split (3, 1) that share the network are up to this many times slower."""
MODELS: Final[Mapping[str, str]] = MappingProxyType(
    {"nmt": "nmt", "vgg": "vgg", "gpt2": "gpt2-xl", "gpt67": "gpt-6.7b"}
)
STEPS: Final[Mapping[str, tuple[float, float, float]]] = MappingProxyType(
    {
        "imagenet": (0.161, 0.383, 0.334),
        "bert": (0.533, 1.949, 1.187),
        "cifar10": (0.0582, 0.1475, 0.1269),
        "yolov3": (0.457, 1.201, 0.689),
        "deepspeech2": (0.666, 0.996, 0.736),
        "ncf": (0.0122, 0.0292, 0.0211),
    }
)
"""Model -> seconds of a step of 4 GPUs on one server, on two, on four; servers of 4 GPUs."""

Entry = Mapping[str, Any]


def reproduce(settings: Settings, progress: Progress, execute: Execute = emulate) -> Sequence[PaperRow]:
    """Return the rows of the three scenarios; the note names runs that failed."""
    if settings.only:
        raise BadInputError(f"--row {settings.only[0]}: philly-locality makes all its rows, expected no --row")
    seeds = range(settings.seed, settings.seed + settings.seeds)
    wanted = {name: [Task(name, ECMP, seed) for seed in seeds] for name in (SERVERS, SPLIT, SPREAD)}
    every = [task for tasks in wanted.values() for task in tasks]
    found = Runs(settings.out, redo=settings.redo, execute=execute).all(every, progress)
    rows: list[PaperRow] = []
    for name, make in ((SERVERS, _servers), (SPLIT, _split), (SPREAD, _spread)):
        entries = [entry for task in wanted[name] if (entry := found[task].entry)]
        note, bad = not_ok(wanted[name], found), exit_status(found[task] for task in wanted[name])
        rows += [PaperRow(label, paper, here, note, bad) for label, paper, here in make(entries)]
    return rows


Numbers = tuple[str, dict[str, float], dict[str, float]]


def _servers(entries: Sequence[Entry]) -> list[Numbers]:
    rows: list[Numbers] = []
    for label, (job, paper) in UTILIZATION.items():
        jobs = [each for entry in entries for each in entry["jobs"] if each["name"].startswith(job)]
        values = [each["gpu_utilization"] for each in jobs]
        printed = {} if paper is None else {"utilization": paper}
        rows.append((label, printed, {"utilization": fmean(values)} if values else {}))
    return rows


def _split(entries: Sequence[Entry]) -> list[Numbers]:
    ratios = {model: _ratio(entries, f"{job}-split", job) for job, model in MODELS.items()}
    known = {model: ratio for model, ratio in ratios.items() if ratio}
    most = {"slow_down": max(known.values())} if known else {}
    worst: Numbers = ("split 3 + 1, slowest model", {"slow_down": SLOWEST_SPLIT}, most)
    return [worst, *((f"split 3 + 1, {model}", {}, {"slow_down": ratio}) for model, ratio in known.items())]


def _spread(entries: Sequence[Entry]) -> list[Numbers]:
    rows: list[Numbers] = []
    for model, (_, two, four) in STEPS.items():
        ratio = _ratio(entries, f"{model}-22", f"{model}-1111")
        rows.append((f"{model}, 22 against 1111", {"slow_down": two / four}, {"slow_down": ratio} if ratio else {}))
    return rows


def _ratio(entries: Sequence[Entry], jobs: str, base: str) -> float:
    """Mean iteration of the jobs whose names start with ``jobs`` over that of ``base``; 0 if either is missing."""
    slow = [_mean_s(job) for entry in entries for job in entry["jobs"] if job["name"].startswith(jobs)]
    fast = [_mean_s(job) for entry in entries for job in entry["jobs"] if job["name"] == base]
    return fmean(slow) / fmean(fast) if slow and fast and fmean(fast) > 0 else 0.0


def _mean_s(job: Entry) -> float:
    return float(job["iteration_s"]["mean"] or 0.0)
