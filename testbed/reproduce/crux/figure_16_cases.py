"""The generator ``independent`` of small cases for figure 16 of Crux (SIGCOMM 2024, section 4.4).

The paper gives: two-layer Clos, 2 to 4 ToRs, 2 aggregation switches, at most 20 hosts of 8 GPUs,
5 jobs, 3 levels. It does not give link speeds, jobs or placements. What is chosen here:

=============  =====================================================================================
fabric         2, 3 or 4 ToRs, equally likely; 4 hosts per ToR up to as many as 20 hosts allow, equally likely.
               Links of the paper's testbed (section 6.1, figure 18), bonded: 4 NICs of 2 x 100 Gb/s per
               host, 2 x 100 Gb/s from each ToR to each aggregation switch
size           8, 16, 24, 32, 48 or 64 GPUs, as often as jobs of these sizes occur in the published trace
               of the paper's cluster (910, 209, 32, 434, 87 and 108 jobs)
hosts          8 GPUs are 4 on each of two hosts (section 6.2 spreads its BERT-8); 16 GPUs are two whole
               hosts or 4 on each of four (the BERT-16 of section 2.2), equally likely; larger jobs, whole hosts.
               Four GPUs of a host have two NICs of their own, so no two jobs share a host link
ToRs           every job leaves its ToR, or it would have no path to choose: it spans 2 up to all ToRs,
               equally likely, evenly, any of them. Ten departures from at most four ToRs with two uplinks
               each: on any paths some jobs share a link
compute        0.1 s to 1.5 s per iteration, log-uniform: ResNet-50 to GPT in :mod:`workloads.models.catalogue`
overlap        the share of compute that may run beside communication: 0 to 2/3, uniform (a backward pass
               is two thirds)
communication  an allreduce, one ring of hosts per NIC. Its size follows from the utilisation of the job
               alone on its path: 0.53 to 1, uniform, the range of the Ideal bars of figures 19 to 22
work           the same FLOP/s on every GPU, as in both examples of section 4.2
=============  =====================================================================================

Nothing about a job depends on its size: communication is drawn independently of it.

Flows of a job follow one path: all cross the same aggregation switch. All jobs start at time 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Final

from testbed.reproduce.crux.figure_16_optimum import PathChoices
from topologies.clos import clos
from topologies.fabric import Fabric, Path
from workloads.analysis import bottleneck_time, bytes_by_link
from workloads.build import JobSpec, build_jobs
from workloads.job import Flow, Job
from workloads.models.calibration import exposed_communication
from workloads.models.catalogue import TRANSFORMER_FLOPS
from workloads.periodic_job import PeriodicJob

JOBS: Final = 5
LEVELS: Final = 3
AGGREGATIONS: Final = 2
GPUS_PER_HOST: Final = 8
HALF: Final = GPUS_PER_HOST // 2
MOST_HOSTS: Final = 20
FEWEST_HOSTS_PER_TOR: Final = 4
TORS: Final = (2, 3, 4)
SIZES: Final = {8: 910, 16: 209, 24: 32, 32: 434, 48: 87, 64: 108}
"""GPUs -> jobs of that size in the published trace."""
COMPUTE_S: Final = (0.1, 1.5)
MOST_OVERLAP: Final = 2 / 3
UTILIZATION: Final = (0.53, 1.0)

_MODEL: Final = "crux-bert"
"""Any model with one gradient exchange: its compute, bytes and FLOPs are all replaced."""
TRIAL_BYTES: Final = 1e9


@dataclass(frozen=True)
class Case:
    """A fabric and five jobs in order of arrival."""

    fabric: Fabric
    jobs: tuple[Job, ...]

    def paths(self, choice: tuple[int, ...]) -> dict[str, Path]:
        """Flow id -> path when job i crosses aggregation switch ``choice[i]``."""
        return {
            flow.id: path
            for job, aggregation in zip(self.jobs, choice, strict=True)
            for flow, path in _paths(job, self.fabric, aggregation)
        }

    def choices(self) -> tuple[PathChoices, ...]:
        """The jobs as periodic fluids, with the loads of each candidate path."""
        return tuple(_choice(job, self.fabric) for job in self.jobs)


def generate(seed: int, index: int) -> Case:
    """Return case ``index`` of ``seed``: the same on every machine and in any order."""
    random = Random(f"crux-fig16/{seed}/{index}")
    tors, fabric = draw_fabric(random)
    placements = None
    while placements is None:
        placements = _placements(fabric, tors, random)
    return case_of(
        fabric, [_spec(f"job{number}", placement, random) for number, placement in enumerate(placements)], seed
    )


def draw_fabric(random: Random) -> tuple[int, Fabric]:
    """Return a number of ToRs and a fabric with so many."""
    tors = random.choice(TORS)
    return tors, _fabric(tors, random.randint(FEWEST_HOSTS_PER_TOR, MOST_HOSTS // tors))


def case_of(fabric: Fabric, wanted: Sequence[tuple[JobSpec, float]], seed: int) -> Case:
    """Return the case of jobs that take the given seconds of communication alone on their path.

    The specs have :data:`TRIAL_BYTES` of communication; their bytes follow from what that takes.
    """
    trial = build_jobs([spec for spec, _ in wanted], fabric, seed=seed)
    sized = [
        replace(spec, communication_bytes=TRIAL_BYTES * seconds / max(_loads(job, fabric, 0).values()))
        for (spec, seconds), job in zip(wanted, trial, strict=True)
    ]
    return Case(fabric, build_jobs(sized, fabric, seed=seed))


@lru_cache(maxsize=64)
def _fabric(tors: int, hosts_per_tor: int) -> Fabric:
    return clos(
        hosts=tors * hosts_per_tor,
        gpus_per_host=GPUS_PER_HOST,
        nics_per_host=4,
        ports_per_nic=2,
        tors=tors,
        aggregations=AGGREGATIONS,
        port_rate=100e9,
        fabric_rate=100e9,
        parallel_links=2,
        bonded=True,
    )


def _placements(fabric: Fabric, tors: int, random: Random) -> list[tuple[str, ...]] | None:
    """GPUs of five jobs, or None if they do not fit: then sizes are drawn again."""
    per_tor = len(fabric.hosts) // tors
    free = {host: 2 for host in range(len(fabric.hosts))}
    placed = []
    for _ in range(JOBS):
        (size,) = random.choices(tuple(SIZES), tuple(SIZES.values()))
        halves = 1 if size == 8 or (size == 16 and random.random() < 0.5) else 2
        hosts = size // (HALF * halves)
        chosen = _hosts(free, tors, per_tor, hosts, halves, random)
        if chosen is None:
            return None
        placed.append(tuple(gpu for host in chosen for gpu in _gpus(fabric, host, free, halves)))
    return placed


def _hosts(free: dict[int, int], tors: int, per_tor: int, wanted: int, halves: int, random: Random) -> list[int] | None:
    """``wanted`` hosts with room, evenly under 2 or more ToRs, in ring order; None where there are too few."""
    under = random.sample(range(tors), random.randint(2, min(tors, wanted)))
    chosen: list[int] = []
    for place, tor in enumerate(under):
        share = wanted // len(under) + (place < wanted % len(under))
        fitting = [host for host in range(tor * per_tor, (tor + 1) * per_tor) if free[host] >= halves]
        if len(fitting) < share:
            return None
        chosen += random.sample(fitting, share)
    return sorted(chosen)


def _gpus(fabric: Fabric, host: int, free: dict[int, int], halves: int) -> tuple[str, ...]:
    """Take the next free ``halves`` of a host."""
    first = (2 - free[host]) * HALF
    free[host] -= halves
    return fabric.hosts[f"h{host}"].gpus[first : first + halves * HALF]


def _spec(name: str, placement: tuple[str, ...], random: Random) -> tuple[JobSpec, float]:
    """The job with a trial size of its communication, and the seconds that it is to take alone."""
    shortest, longest = COMPUTE_S
    compute_s = shortest * math.exp(random.random() * math.log(longest / shortest))
    overlap = random.uniform(0.0, MOST_OVERLAP)
    wanted_s = exposed_communication(compute_s, overlap, random.uniform(*UTILIZATION))
    spec = JobSpec(
        name,
        _MODEL,
        placement=placement,
        compute_s=compute_s,
        overlap=overlap,
        flops=compute_s * TRANSFORMER_FLOPS,
        communication_bytes=TRIAL_BYTES,
        collective="hierarchical",
    )
    return spec, wanted_s


def _paths(job: Job, fabric: Fabric, aggregation: int) -> list[tuple[Flow, Path]]:
    """Flow and path; flows under one ToR have a single candidate."""
    found = []
    for flow in job.flows:
        candidates = fabric.candidate_paths(flow.source, flow.target)
        found.append((flow, candidates[aggregation % len(candidates)]))
    return found


def _loads(job: Job, fabric: Fabric, aggregation: int) -> dict[str, float]:
    """Link -> seconds for the job's bytes of one iteration."""
    links = {flow.id: path for flow, path in _paths(job, fabric, aggregation)}
    sizes = bytes_by_link(((flow.id, flow.bytes) for flow in job.flows), links)
    return {link: bottleneck_time({link: size}, fabric) for link, size in sizes.items()}


def _choice(job: Job, fabric: Fabric) -> PathChoices:
    hidden_s = sum(phase.overlap * phase.compute_s for phase in job.phases)
    lead_s = max(0.0, job.compute_s - hidden_s)
    candidates = tuple(_loads(job, fabric, aggregation) for aggregation in range(AGGREGATIONS))
    return PathChoices(PeriodicJob(job.compute_s, lead_s, {}, float(len(job.gpus))), candidates)
