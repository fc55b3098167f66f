"""How long a scheduler takes to decide, and how that grows with the number of jobs. Nothing is sent.

Targets, on one core, are those of Crux: after one arrival or departure among 37 jobs on a Clos of 173
ToRs and 16 aggregation switches (the trace's peak) 3 ms; 100 jobs from nothing in 1 s; 1,000 jobs
on 10,000 GPUs in 20 s. Every other scheduler is measured beside it on the same jobs, with ``ecmp``
as the yardstick. Below them stand the rows of :mod:`benchmarks.decisions_at_scale`.

Jobs: GPUs drawn from the distribution of the Crux trace (figure 4), models from the catalogue;
all-to-all models only up to 64 GPUs, as their flows grow with the square of the hosts. Hosts are
handed out ToR by ToR, so that the hosts of a job hang on different ToRs and share them with
other jobs: more contention than a placement that packs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from random import Random
from statistics import median
from typing import Final

from benchmarks.common import Line, Outcome, main, say
from benchmarks.decision_cases import GPUS_OF_JOBS, MODELS, SEED, views
from benchmarks.decisions_at_scale import scale_lines
from controller.decision import (
    Decision,
    Scheduler,
)
from controller.schedulers.registry import create, names
from topologies.clos import clos
from topologies.fabric import Fabric
from workloads.build import JobSpec, build_jobs
from workloads.job import Job

TITLE: Final = "Time of a decision on one core; event: arrival or departure of a job, or of a step where steps count"
REFERENCE: Final = "ecmp"
TORS: Final = 173
AGGREGATIONS: Final = 16
NICS: Final = 4
PORTS: Final = 2
GPUS_PER_HOST: Final = 8
PORT_RATE: Final = 100e9

BUSY: Final = 0.77
"""Share of the GPUs that jobs use at least: 1,536 of 2,000 at the trace's peak."""
ALLTOALL_MODELS: Final = ("ctr", "multi-interests")
LARGEST_ALLTOALL: Final = 64

EVENTS: Final = 74
"""Events measured at most, a departure and an arrival by turns."""
BUDGET_S: Final = 4.0
"""Seconds after which no further event is measured."""
REPEATS: Final = 3
REPEATED_JOBS: Final = 37
"""Up to so many jobs a measurement is repeated, and the median taken of each event."""
TOO_SLOW_S: Final = 10.0
"""A scheduler that takes longer from nothing is not asked for more jobs."""


@dataclass(frozen=True, slots=True)
class Size:
    """A cluster: ``jobs`` that use at most ``gpus``, on ``hosts_per_tor`` hosts under each ToR."""

    jobs: int
    gpus: int
    hosts_per_tor: int

    def fabric(self) -> Fabric:
        """A Clos without oversubscription, hosts as in the Crux testbed: 4 NICs of 2 ports of 100 Gb/s."""
        per_tor = self.hosts_per_tor * NICS * PORTS * PORT_RATE
        return clos(
            hosts=TORS * self.hosts_per_tor,
            gpus_per_host=GPUS_PER_HOST,
            nics_per_host=NICS,
            ports_per_nic=PORTS,
            tors=TORS,
            aggregations=AGGREGATIONS,
            port_rate=PORT_RATE,
            fabric_rate=per_tor / AGGREGATIONS,
        )


SIZES: Final = (Size(10, 600, 2), Size(37, 2000, 2), Size(100, 5000, 4), Size(300, 10000, 8), Size(1000, 10000, 8))
TARGETS: Final[Mapping[int, tuple[str, float]]] = {37: ("event", 0.003), 100: ("nothing", 1.0), 1000: ("nothing", 20.0)}
"""Jobs -> what the target of Crux is on, and its seconds."""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds: the first decision of a new scheduler, and those after an event."""

    nothing_s: float
    events_s: tuple[float, ...]


def cluster_jobs(size: Size, fabric: Fabric) -> tuple[Job, ...]:
    """Return the jobs of ``size``: some are doubled until enough GPUs are busy, the largest halved until all fit."""
    random = Random(SEED)
    wanted = random.choices(list(GPUS_OF_JOBS), list(GPUS_OF_JOBS.values()), k=size.jobs)
    while sum(wanted) < BUSY * size.gpus:
        grown = random.randrange(size.jobs)
        wanted[grown] = min(2 * wanted[grown], max(GPUS_OF_JOBS))
    while sum(wanted) > size.gpus:
        largest = wanted.index(max(wanted))
        wanted[largest] //= 2
    hosts = list(fabric.hosts.values())
    by_turns = [hosts[tor * size.hosts_per_tor + turn] for turn in range(size.hosts_per_tor) for tor in range(TORS)]
    free = iter([gpu for host in by_turns for gpu in host.gpus])
    # The largest first: 8 GPUs and more are whole hosts then, and use all their NICs.
    order = sorted(range(size.jobs), key=lambda number: -wanted[number])
    given = {number: tuple(islice(free, wanted[number])) for number in order}
    specs = [
        JobSpec(f"job{number}", _model(random, count), placement=given[number]) for number, count in enumerate(wanted)
    ]
    return build_jobs(specs, fabric, seed=SEED)


def _model(random: Random, gpus: int) -> str:
    return random.choice(MODELS + ALLTOALL_MODELS if gpus <= LARGEST_ALLTOALL else MODELS)


def times(scheduler: Scheduler, fabric: Fabric, jobs: Sequence[Job]) -> Times:
    """Let a new ``scheduler`` decide on all ``jobs``, then after one event after the other."""
    seen = views(scheduler, fabric, jobs)
    spent: list[float] = []
    last: Decision | None = None
    while len(spent) <= EVENTS and (len(spent) < 3 or sum(spent[1:]) < BUDGET_S):
        view, event = next(seen)
        view = view if last is None else replace(view, decision=last)
        begin = time.perf_counter()
        last = scheduler.decide(view, event)
        spent.append(time.perf_counter() - begin)
    return Times(spent[0], tuple(spent[1:]))


def steady_times(name: str, size: Size, jobs: Sequence[Job]) -> Times:
    """Event by event the median of ``REPEATS`` new schedulers that see the same events."""
    rounds = [times(create(name), size.fabric(), jobs) for _ in range(REPEATS if size.jobs <= REPEATED_JOBS else 1)]
    each = tuple(median(spent) for spent in zip(*(found.events_s for found in rounds), strict=False))
    return Times(median(found.nothing_s for found in rounds), each)


def measure(quick: bool) -> list[Line]:
    """A row per scheduler and size; ``quick`` takes the two smallest."""
    sizes = SIZES[:2] if quick else SIZES
    schedulers = (REFERENCE, *(name for name in names() if name != REFERENCE))
    slow: dict[str, float] = {}
    lines: list[Line] = []
    for size in sizes:
        jobs = cluster_jobs(size, size.fabric())
        reference: Times | None = None
        for name in schedulers:
            if name in slow:
                lines.append(_skipped(name, size, f"took {slow[name]:.0f} s from nothing with fewer jobs"))
                continue
            say(f"{name}: {size.jobs} jobs")
            try:
                found = steady_times(name, size, jobs)
            except Exception as error:  # one scheduler that cannot must not hide what the others do
                lines.append(_skipped(name, size, f"{type(error).__name__}: {error}"))
                continue
            reference = found if name == REFERENCE else reference
            if found.nothing_s > TOO_SLOW_S:
                slow[name] = found.nothing_s
            lines.append(_line(name, size, jobs, found, reference))
    return sorted(lines, key=lambda line: str(line.columns["scheduler"])) + scale_lines(quick)


def _skipped(name: str, size: Size, reason: str) -> Line:
    return Line({"scheduler": name, "jobs": size.jobs}, note=f"skipped: {reason}")


def _line(name: str, size: Size, jobs: Sequence[Job], found: Times, reference: Times | None) -> Line:
    middle = median(found.events_s)
    columns = {
        "scheduler": name,
        "jobs": size.jobs,
        "GPUs": sum(len(job.gpus) for job in jobs),
        "flows": sum(len(job.flows) for job in jobs),
        "from nothing s": round(found.nothing_s, 4),
        "event ms, median": round(1e3 * middle, 3),
        "p90": round(1e3 * sorted(found.events_s)[int(0.9 * len(found.events_s))], 3),
        "largest": round(1e3 * max(found.events_s), 3),
        "times ecmp": "" if reference is None else f"{middle / median(reference.events_s):.1f}",
    }
    if name != "crux" or size.jobs not in TARGETS:
        return Line(columns)
    kind, limit_s = TARGETS[size.jobs]
    reached: Outcome = "pass" if (max(found.events_s) if kind == "event" else found.nothing_s) <= limit_s else "missed"
    return Line(columns, f"{kind}: {limit_s:g} s" if kind == "nothing" else f"event: {1e3 * limit_s:g} ms", reached)


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
