"""How much a simulation of packets has to do, before it is run: packets times the links that they pass. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil
from typing import Final

from testbed.experiment.experiment import Experiment
from topologies.fabric import Path
from topologies.shaping import segment_size
from workloads.job import Job

WINDOW_HOPS_PER_S: Final = 10e6
LINE_RATE_HOPS_PER_S: Final = 4e6
"""Packet hops per second of one core of 2024, in the middle of what ``benchmarks.simulation`` finds: congestion control
and long queues make up to a factor of two."""
SIMULATIONS: Final = 2
"""Each packet is simulated in the run, and once more with its job alone."""


def packet_hops(
    experiment: Experiment, paths: Mapping[str, Path], iteration_s: Mapping[str, float], until_s: float
) -> float:
    """Links that packets pass in a run of ``until_s`` seconds: jobs go on until all are measured.

    ``iteration_s``: job -> seconds of an iteration.
    """
    hops = 0.0
    for job in experiment.jobs:
        iterations = (until_s - job.start_s) / iteration_s[job.name] if iteration_s[job.name] > 0.0 else 0.0
        hops += max(0.0, min(float(job.iterations), iterations)) * _hops_of_iteration(job, experiment, paths)
    return hops


def simulation_s(experiment: Experiment, hops: float) -> float:
    """Seconds of CPU time that ``hops`` packet hops and the jobs alone take."""
    return SIMULATIONS * hops / (LINE_RATE_HOPS_PER_S if experiment.at_line_rate else WINDOW_HOPS_PER_S)


def _hops_of_iteration(job: Job, experiment: Experiment, paths: Mapping[str, Path]) -> int:
    payload = experiment.mtu if experiment.at_line_rate else segment_size(experiment.mtu)
    return sum(
        ceil(experiment.scale.size(transfer.bytes) / payload) * len(paths.get(transfer.flow, ()))
        for phase in job.phases
        for transfer in phase.transfers
    )
