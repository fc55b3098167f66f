"""Tiresias's example of three jobs on two GPUs: the benefit of known durations, or of their distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any, Final

from testbed.progress import Progress
from testbed.reproduce.paper_experiment import PaperRow, Settings
from topologies.clos import clos
from workloads.managers.durations import Play
from workloads.managers.jobs import Waiting
from workloads.managers.registry import manager

JOBS: Final = {"one": (2, 2.0), "two": (1, 8.0), "three": (2, 6.0)}
"""Name -> GPUs and seconds; all arrive at once, on two GPUs."""
POLICIES: Final[Mapping[str, tuple[str, Mapping[str, Any], tuple[float, float, float]]]] = {
    "SRSF": ("srsf", {}, (2, 10, 16)),
    "2D-Gittins": ("tiresias", {"limits": [4.0], "services": [4.0, 8.0, 12.0], "promote": 0}, (2, 12, 16)),
    "2D-LAS, slices of 1 s": ("tiresias", {"limits": [], "slice_s": 1.0, "promote": 0}, (5, 14, 16)),
}
"""Row -> policy, options, and when the three jobs end in the paper."""


def reproduce(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per policy: seconds at which each job ends, and their mean."""
    fabric = clos(hosts=1, gpus_per_host=2, nics_per_host=1, tors=1, aggregations=1, port_rate=100e9, fabric_rate=100e9)
    rows = []
    for label, (policy, options, paper) in POLICIES.items():
        jobs = [Waiting(name, gpus, 0.0, s, remaining_s=s) for name, (gpus, s) in JOBS.items()]
        played = Play(manager(policy=policy, options={"policy": options}), fabric, jobs).run()
        here = {each.name: each.end_s or 0.0 for each in played}
        printed = dict(zip(JOBS, paper, strict=True))
        rows.append(
            PaperRow(label, {**printed, "mean": fmean(printed.values())}, {**here, "mean": fmean(here.values())}, "")
        )
    return rows
