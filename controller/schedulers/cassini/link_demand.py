"""A job's demand on a link over one iteration of the job alone: the arcs of CASSINI's circles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from topologies.fabric import Fabric, Path
from workloads.analysis import bytes_by_link, communication_begins, communication_time
from workloads.job import Job


@dataclass(frozen=True, slots=True)
class Arc:
    """A stretch of an iteration, in seconds from its start, with a demand as share of a link's capacity."""

    begin_s: float
    end_s: float
    share: float


@dataclass(frozen=True, slots=True)
class Demand:
    """A job alone: the length of its iteration in seconds, and link -> the arcs in which it sends over it."""

    iteration_s: float
    arcs: Mapping[str, tuple[Arc, ...]]


def demand_of(job: Job, fabric: Fabric, paths: Mapping[str, Path]) -> Demand:
    """Return the demand of ``job`` on the network links of its ``paths`` (flow id -> links).

    One phase follows the other, or those of each stage of a pipeline. A phase sends from where its overlap allows, on
    every link for as long as its most loaded link takes. So its most loaded link is full, the others are as full as
    their bytes make them. Raises ``KeyError`` for a flow without a path.
    """
    arcs: dict[str, list[Arc]] = {}
    begins, iteration_s = communication_begins(job, fabric, paths)
    for phase, begin in zip(job.phases, begins, strict=True):
        load = bytes_by_link(((transfer.flow, transfer.bytes) for transfer in phase.transfers), paths)
        duration = communication_time(phase, load, fabric)
        for link, size in load.items():
            if size > 0:
                share = 8 * size / fabric.links[link].capacity / duration
                arcs.setdefault(link, []).append(Arc(begin, begin + duration, share))
    return Demand(iteration_s, {link: tuple(found) for link, found in arcs.items()})
