"""An iteration of jobs as a GOAL schedule, the text that LogGOPSim and ATLAHS read: compute, sends and receives.

A rank is a port of a job's host; ranks of several jobs follow each other, as ATLAHS merges them. A message that follows
another is sent chunk by chunk, each after the chunk before has come in. Times are nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import ceil

from topologies.fabric import Fabric
from workloads.imported.goal import GoalSchedule, Operation
from workloads.job import Job, Phase, Transfer


def schedule(jobs: Sequence[Job], fabric: Fabric) -> GoalSchedule:
    """Return one iteration of ``jobs``, without jitter and stragglers."""
    ranks, operations = 0, list[Operation]()
    for job in jobs:
        made = _Operations(job, fabric, ranks, len(operations))
        ranks += made.ranks
        operations += made.operations
    return GoalSchedule("", ranks, tuple(operations))


class _Operations:
    """The operations of one job, whose first rank is number ``first``, and whose first operation is at ``offset``."""

    def __init__(self, job: Job, fabric: Fabric, first: int, offset: int) -> None:
        self._job, self._fabric, self._first, self._offset = job, fabric, first, offset
        ports = dict.fromkeys(port for flow in job.flows for port in (flow.source, flow.target))
        if not ports:  # a job inside one host
            ports = dict.fromkeys([fabric.nics[fabric.nic_of_gpu[job.gpus[0]]].ports[0]])
        self._place = {port: place for place, port in enumerate(ports)}
        self.ranks = len(ports)
        self.operations: list[Operation] = []
        self._ready: dict[int, tuple[int, ...]] = {}
        self._received: dict[int, dict[int, list[int]]] = {}
        self._tag = 0
        behind: dict[int, list[int]] = {}
        for index, phase in enumerate(job.phases):
            for rank, waits in self._phase(index, phase).items():
                if phase.background:
                    behind.setdefault(rank, []).extend(waits)
        for rank, waits in behind.items():  # the iteration ends with what went on in the background
            self._compute(rank, 0.0, (*self._ready.get(rank, ()), *waits))

    def _add(self, operation: Operation, needs: Iterable[int]) -> int:
        """Add an operation that waits for ``needs``; return its place."""
        self.operations.append(replace(operation, needs=tuple(dict.fromkeys(needs))))
        return self._offset + len(self.operations) - 1

    def _compute(self, rank: int, seconds: float, needs: Iterable[int]) -> int:
        return self._add(Operation(self._first + rank, "calc", round(1e9 * seconds)), needs)

    def _phase(self, index: int, phase: Phase) -> dict[int, list[int]]:
        """Add a phase; return, by rank, what its communication ends with."""
        members = self._members(phase)
        may_send: dict[int, tuple[int, ...]] = {}
        computed: dict[int, tuple[int, ...]] = {}
        for rank in members:
            awaited = [each for number in phase.awaits for each in self._received.get(number, {}).get(rank, ())]
            first = self._compute(rank, (1 - phase.overlap) * phase.compute_s, (*self._ready.get(rank, ()), *awaited))
            may_send[rank] = computed[rank] = (first,)
            if phase.overlap > 0:
                computed[rank] = (self._compute(rank, phase.overlap * phase.compute_s, [first]),)
        ends = self._messages(phase, may_send)
        if phase.detached:
            self._received[index] = ends[1]
        waited = {} if phase.detached or phase.background else _joined(ends)
        for rank in members:
            self._ready[rank] = (*computed[rank], *waited.get(rank, ()))
        return _joined(ends)

    def _members(self, phase: Phase) -> list[int]:
        gpus = [self._job.gpus[place] for place in phase.members] if phase.members else self._job.gpus
        hosts = {self._fabric.host_of_gpu[gpu] for gpu in gpus}
        return [place for port, place in self._place.items() if self._host(port) in hosts]

    def _host(self, port: str) -> str:
        return self._fabric.nics[self._fabric.ports[port].nic].host

    def _messages(
        self, phase: Phase, may_send: dict[int, tuple[int, ...]]
    ) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """Add the messages of a phase; return the places of sends, and of receives, by rank."""
        sends: dict[int, list[int]] = {}
        receives: dict[int, list[int]] = {}
        arrived: dict[str, list[int]] = {transfer.flow: [] for transfer in phase.transfers}
        followed = {each.after: _parts(each) for each in phase.transfers if each.after is not None}
        queue = [(each, list(_chunks(each, followed.get(each.flow, 1)))) for each in phase.transfers]
        for turn in range(max((len(chunks) for _, chunks in queue), default=0)):
            for transfer, chunks in queue:
                if turn >= len(chunks):
                    continue
                flow = self._job.flow_by_id[transfer.flow]
                source, target = self._place[flow.source], self._place[flow.target]
                needs = may_send.get(source, ())
                if transfer.after is not None and turn > 0:
                    before = arrived[transfer.after]
                    needs = (before[min(turn, len(before)) - 1],) if before else needs
                self._tag += 1
                here, there = self._first + source, self._first + target
                sent = self._add(Operation(here, "send", chunks[turn], there, self._tag), needs)
                received = self._add(Operation(there, "recv", chunks[turn], here, self._tag), ())
                sends.setdefault(source, []).append(sent)
                receives.setdefault(target, []).append(received)
                arrived[transfer.flow].append(received)
        return sends, receives


def _chunks(transfer: Transfer, followed: int) -> Iterator[int]:
    """Bytes of the parts in which a message is sent; ``followed``: parts of one that forwards it, 1 for none."""
    size, parts = round(transfer.bytes), max(_parts(transfer), followed)
    bounds = [part * size // parts for part in range(parts + 1)]
    return (end - begin for begin, end in pairwise(bounds))


def _parts(transfer: Transfer) -> int:
    """In how many parts a message is forwarded: as much at a time as may be sent before anything has come in."""
    return ceil(transfer.bytes / transfer.lead - 1e-9) if transfer.after is not None and transfer.lead > 0 else 1


def _joined(ends: tuple[dict[int, list[int]], dict[int, list[int]]]) -> dict[int, list[int]]:
    sends, receives = ends
    return {place: [*sends.get(place, ()), *receives.get(place, ())] for place in {**sends, **receives}}
