"""An iteration of a pipeline alone: its stages take part in phases of their own, and wait for what others send them.

The phases of a job are in an order in which each comes after those that it waits for, so going through them once, with
a clock for each host, tells when everything happens.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from topologies.fabric import Fabric
from workloads.job import Job, Phase, Transfer
from workloads.phases import once_per_transfers

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
    places = _Places(job, fabric)
    clocks = _Clocks(dict.fromkeys(places.hosts, 0.0))
    begins = []
    for number, phase in enumerate(job.phases):
        starts = {host: _start(host, phase, clocks) for host in places.of_members(phase)}
        ready, takes_s = max(starts.values()) + (1 - phase.overlap) * phase.compute_s, takes(phase)
        begins.append(ready)
        if phase.detached:
            clocks.there[number] = _sent(phase, places.of_transfers(phase), starts, takes_s, clocks)
        _go_on(phase, starts, ready + takes_s, clocks)
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


class _Places:
    """The hosts of what phases share: looked up once for all phases that have the same members, or transfers."""

    def __init__(self, job: Job, fabric: Fabric) -> None:
        self.hosts = [fabric.host_of_gpu[gpu] for gpu in job.gpus]
        self._flows, self._ports = job.flow_by_id, fabric.ports
        self._of_members: dict[int, tuple[str, ...]] = {}
        self.of_transfers = once_per_transfers(self._ends)
        """Phase -> flow, its first and its last host, of each transfer."""

    def of_members(self, phase: Phase) -> tuple[str, ...]:
        """The hosts of the GPUs that take part."""
        found = self._of_members.get(id(phase.members))
        if found is None:
            hosts = [self.hosts[place] for place in phase.members] if phase.members else self.hosts
            found = self._of_members[id(phase.members)] = tuple(dict.fromkeys(hosts))
        return found

    def _ends(self, transfers: Iterable[Transfer]) -> list[tuple[str, str, str]]:
        flows = [self._flows[transfer.flow] for transfer in transfers]
        return [(each.id, self._ports[each.source].host, self._ports[each.target].host) for each in flows]


def _sent(
    phase: Phase, ends: list[tuple[str, str, str]], starts: Mapping[str, float], takes_s: float, clocks: _Clocks
) -> dict[str, float]:
    """Host -> when what ``phase`` sends it is there; messages of one flow go one after the other."""
    there: dict[str, float] = {}
    free, computed_s = clocks.free, phase.compute_s
    for flow, source, target in ends:
        end = max(starts[source] + computed_s, free[flow]) + takes_s
        free[flow] = end
        if there.get(target, 0.0) < end:
            there[target] = end
    clocks.last = max(clocks.last, *there.values()) if there else clocks.last
    return there
