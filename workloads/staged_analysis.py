"""An iteration of a pipeline alone: its stages take part in phases of their own, and wait for what others send them.

The phases of a job are in an order in which each comes after those that it waits for, so going through them once, with
a clock for each host, tells when everything happens.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from topologies.fabric import Fabric
from workloads.job import Job, Phase

CommunicationTime = Callable[[Phase], float]
"""Seconds that the communication of a phase takes alone; 0 for a phase that sends nothing."""


@dataclass(frozen=True, slots=True)
class Played:
    """By phase when its communication ``begins``; ``seconds`` of the whole iteration."""

    begins: tuple[float, ...]
    seconds: float


@dataclass(slots=True)
class _Clocks:
    """When each host has done what came before; when what it awaits is there; when a flow is free again."""

    done: dict[str, float]
    there: dict[int, Mapping[str, float]] = field(default_factory=dict)
    free: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    last: float = 0.0


def played(job: Job, fabric: Fabric, takes: CommunicationTime) -> Played:
    """Return an iteration of ``job``, whose communication ``takes`` as long as it would alone, on ``fabric``."""
    hosts = [fabric.host_of_gpu[gpu] for gpu in job.gpus]
    clocks = _Clocks(dict.fromkeys(hosts, 0.0))
    begins = []
    for number, phase in enumerate(job.phases):
        members = dict.fromkeys(hosts[place] for place in phase.members) if phase.members else dict.fromkeys(hosts)
        starts = {host: _start(host, phase, clocks) for host in members}
        ready = max(starts.values()) + (1 - phase.overlap) * phase.compute_s
        begins.append(ready)
        if phase.detached:
            clocks.there[number] = _sent(phase, job, fabric, starts, takes(phase), clocks)
        _go_on(phase, starts, ready + takes(phase), clocks)
    return Played(tuple(begins), max(clocks.last, *clocks.done.values()))


def _start(host: str, phase: Phase, clocks: _Clocks) -> float:
    """When ``host`` begins ``phase``: all that it awaits is there."""
    return max([clocks.done[host], *(clocks.there[awaited].get(host, 0.0) for awaited in phase.awaits)])


def _go_on(phase: Phase, starts: Mapping[str, float], through: float, clocks: _Clocks) -> None:
    waits = phase.communicates and not phase.background and not phase.detached
    if phase.communicates and not phase.detached:
        clocks.last = max(clocks.last, through)
    for host, start in starts.items():
        computed = start + phase.compute_s
        clocks.done[host] = max(computed, through) if waits else computed


def _sent(
    phase: Phase, job: Job, fabric: Fabric, starts: Mapping[str, float], takes: float, clocks: _Clocks
) -> dict[str, float]:
    """Host -> when what ``phase`` sends it is there; messages of one flow go one after the other."""
    there: dict[str, float] = {}
    for transfer in phase.transfers:
        flow = job.flow_by_id[transfer.flow]
        source, target = fabric.ports[flow.source].host, fabric.ports[flow.target].host
        end = max(starts[source] + phase.compute_s, clocks.free[flow.id]) + takes
        clocks.free[flow.id] = end
        there[target] = max(there.get(target, 0.0), end)
        clocks.last = max(clocks.last, end)
    return there
