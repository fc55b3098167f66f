"""A trace of Muri's simulator under our managers: 8 servers of 8 GPUs, restarts for free, placement without effect."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from topologies.clos import clos
from workloads.managers.account import JobOutcome
from workloads.managers.durations import Play
from workloads.managers.jobs import Waiting
from workloads.managers.registry import manager
from workloads.traces.simulators.muri import read

SERVERS, SERVER_GPUS = 8, 8
PROFILING: Final = 1.015
"""The authors' simulator runs every iteration so many times longer than the trace says."""
POLICIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "tiresias": {"limits": [3250, 7200], "promote": 0, "whole_seconds": True},
    "srtf": {},
    "srsf": {},
}
"""Policy -> its options: those of the authors' schedules ``dlas-gpu``, ``shortest`` and ``shortest-gpu``."""


def play(trace: Path, policy: str) -> tuple[JobOutcome, ...]:
    """Return the outcomes of a trace's jobs under one of :data:`POLICIES`."""
    rate = 100e9
    fabric = clos(
        hosts=SERVERS,
        gpus_per_host=SERVER_GPUS,
        nics_per_host=1,
        tors=1,
        aggregations=1,
        port_rate=rate,
        fabric_rate=rate,
    )
    jobs = []
    for job in read(trace).jobs:
        duration_s = job.duration_s * PROFILING
        jobs.append(Waiting(job.name, job.gpus, job.submit_s, duration_s, remaining_s=duration_s, model=job.model))
    return Play(manager(policy=policy, options={"policy": POLICIES[policy]}), fabric, jobs).run()
