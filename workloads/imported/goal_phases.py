"""A GOAL schedule on a fabric: each rank is a host of the job, and does one operation after the other.

Operations of a rank come in the order in which they could begin if nothing contended. A rank computes, or sends, or
waits for a message; a message that could leave beside compute which it does not need waits for that.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from topologies.fabric import Fabric
from workloads.communication.collectives import Channel, Message, expand
from workloads.communication.layout import layout_of
from workloads.imported.goal import GoalSchedule, Operation, dependencies
from workloads.training.placed import PlacedPhase, TooManyMessagesError


def goal_phases(
    schedule: GoalSchedule, gpus: Sequence[str], fabric: Fabric, channels: int, most_messages: int
) -> tuple[PlacedPhase, ...]:
    """Return the phases of an iteration of ``schedule`` whose rank r is the r-th host of ``gpus``.

    Raises ``ValueError`` if there are not as many hosts as ranks, and :class:`TooManyMessagesError`.
    """
    hosts: dict[str, list[int]] = {}
    for place, gpu in enumerate(gpus):
        hosts.setdefault(fabric.host_of_gpu[gpu], []).append(place)
    if len(hosts) != schedule.ranks:
        raise ValueError(f"has {len(hosts)} hosts, its schedule is for {schedule.ranks} ranks: a host each")
    return _Phases(schedule, list(hosts.values()), gpus, fabric, channels, most_messages).made()


@dataclass
class _Phases:
    schedule: GoalSchedule
    members: list[list[int]]
    gpus: Sequence[str]
    fabric: Fabric
    channels: int
    left: int
    phases: list[PlacedPhase] = field(default_factory=list)
    last: dict[int, int] = field(default_factory=dict)
    """Rank -> place of its last phase."""
    sent_by: dict[int, int] = field(default_factory=dict)
    """Place of a send -> place of its phase."""
    awaited: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    """Rank -> sends that one of its phases has awaited."""

    def made(self) -> tuple[PlacedPhase, ...]:
        """All phases, each after what it waits for."""
        for place in self._in_time():
            operation = self.schedule.operations[place]
            if operation.kind == "recv":
                continue
            waits = self._new_waits(operation.rank, [each for each in operation.needs if each in self.schedule.sends])
            if operation.kind == "send":
                self._send(place, operation, waits)
            elif operation.amount > 0 or waits:
                self._add(operation.rank, PlacedPhase(operation.amount * 1e-9, (), awaits=waits))
        into: dict[int, list[int]] = defaultdict(list)
        for receive in self.schedule.sends:
            into[self.schedule.operations[receive].rank].append(receive)
        for rank in range(self.schedule.ranks):  # an iteration ends with what has arrived
            waits = self._new_waits(rank, into[rank])
            if waits or rank not in self.last:
                self._add(rank, PlacedPhase(0.0, (), awaits=waits))
        return tuple(self.phases)

    def _new_waits(self, rank: int, receives: Sequence[int]) -> tuple[int, ...]:
        """Phases whose messages ``rank`` has not awaited yet."""
        sends = [self.schedule.sends[each] for each in receives]
        new = [send for send in sends if send not in self.awaited[rank]]
        self.awaited[rank].update(new)
        return tuple(dict.fromkeys(self.sent_by[send] for send in new))

    def _add(self, rank: int, phase: PlacedPhase) -> int:
        self.phases.append(replace(phase, members=tuple(self.members[rank])))
        self.last[rank] = len(self.phases) - 1
        return self.last[rank]

    def _send(self, place: int, operation: Operation, waits: tuple[int, ...]) -> None:
        """Send with what was sent just before, where that is possible."""
        messages = self._messages(operation)
        self.left -= len(messages)
        if self.left < 0:
            raise TooManyMessagesError
        last = self.last.get(operation.rank)
        before = PlacedPhase(0.0, ()) if last is None else self.phases[last]
        if last is not None and before.detached and not waits and not _channels(before.messages) & _channels(messages):
            size = before.size + operation.amount
            self.phases[last] = replace(before, messages=(*before.messages, *messages), size=size)
            self.sent_by[place] = last
            return
        phase = PlacedPhase(0.0, (), "point-to-point", messages, operation.amount, detached=True, awaits=waits)
        self.sent_by[place] = self._add(operation.rank, phase)

    def _messages(self, operation: Operation) -> tuple[Message, ...]:
        pair = [self._gpu(operation.rank, operation.nic), self._gpu(operation.peer, operation.nic)]
        size = max(1, operation.amount)
        return expand("point-to-point", layout_of(pair, self.fabric), size, channels=self.channels)

    def _gpu(self, rank: int, nic: int) -> str:
        """A GPU of ``rank`` at its NIC of this number, counted round."""
        nics: dict[str, str] = {}
        for place in self.members[rank]:
            nics.setdefault(self.fabric.nic_of_gpu[self.gpus[place]], self.gpus[place])
        return list(nics.values())[nic % len(nics)]

    def _in_time(self) -> list[int]:
        """Places of operations by when they could begin if nothing contended; sends before compute."""
        operations, (waits, behind) = self.schedule.operations, dependencies(self.schedule)
        begins = [0.0] * len(operations)
        ready = [(0.0, each.kind == "calc", place) for place, each in enumerate(operations) if waits[place] == 0]
        heapq.heapify(ready)
        ordered: list[int] = []
        while ready:
            begin, _, place = heapq.heappop(ready)
            ordered.append(place)
            end = begin + self._takes(operations[place])
            for other in behind[place]:
                waits[other] -= 1
                begins[other] = max(begins[other], end)
                if waits[other] == 0:
                    heapq.heappush(ready, (begins[other], operations[other].kind == "calc", other))
        return ordered

    def _takes(self, operation: Operation) -> float:
        if operation.kind == "calc":
            return operation.amount * 1e-9
        if operation.kind == "recv":
            return 0.0
        nic = self.fabric.nics[self.fabric.nic_of_gpu[self._gpu(operation.rank, operation.nic)]]
        return 8 * operation.amount / sum(self.fabric.uplink(port).capacity for port in nic.ports)


def _channels(messages: Sequence[Message]) -> set[Channel]:
    return {message.channel for message in messages}
