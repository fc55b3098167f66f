"""Messages as packets of RDMA connections, on the links of a fabric and through the buffers of its switches.

Link rates count payload, as in the other engines: a full packet's headers come on top. Sizes are bytes of the scenario,
times its seconds: at a bandwidth scale of 10 packets are ten times as large and everything else stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np

from testbed.engines.flow.networks.arrays import longer, taken, wider
from testbed.engines.flow.networks.deadlocks import stuck
from testbed.engines.flow.networks.network import PacketCounts, QueueSample
from testbed.engines.flow.networks.rdma_counts import QueueReader, counts_of_flow, counts_of_network
from testbed.engines.flow.networks.rdma_state import FIRST_ROOM, first_state
from testbed.engines.flow.networks.records import columns, more_records, note_follower, records
from testbed.errors import RunFailedError
from testbed.experiment.experiment import Experiment
from testbed.rdma import state as kinds
from testbed.rdma.senders import ROUNDING
from testbed.rdma.simulate import go_on, let_send, simulate
from testbed.rdma.state import GO_BACK_N, NONE, Stamps
from testbed.rdma.transports.dispatch import HPCC, TRANSPORTS, begin
from workloads.job import Job


class RdmaNetwork:
    """Flows in numbered places; a place is used again when no packet of its flow is under way any more."""

    def __init__(self, capacity: Mapping[str, float], experiment: Experiment) -> None:
        """``capacity``: link -> bit/s of the scenario. ``ValueError`` if ``experiment`` has no network.

        ``RunFailedError`` if its buffers are too small.
        """
        model = experiment.network
        if model is None:
            raise ValueError("the experiment has no network to simulate")
        self.number: Mapping[str, int] = {link: number for number, link in enumerate(capacity)}
        self._names = list(capacity)
        self._model = model
        self._payload = float(experiment.scale.unscale_size(self._model.mtu))
        self._state = first_state(self._names, capacity, experiment, model)
        rates = (float(record.rate) for record in self._state.links)
        self._rates: Mapping[str, float] = dict(zip(self._names, rates, strict=True))
        self._free = list(range(FIRST_ROOM - 1, -1, -1))
        self._leaving: list[int] = []
        self._paths: dict[tuple[tuple[str, ...], ...], int] = {}
        self._used_paths = 0
        self._now = 0.0
        self._present: set[int] = set()
        self._left = PacketCounts()
        self._reader = QueueReader(self._names, self._state)

    def add(self, way: Sequence[str], level: int, slice_size: float = 0.0) -> int:
        """Take a flow in that forwards what comes in by slices of ``slice_size`` bytes; return its place."""
        self._leaving = [place for place in self._leaving if not self._reclaim(place)]
        if not self._free:
            self._make_room_for_flows()
        place = self._free.pop()
        blank = records(
            1, kinds.FLOW, limit=inf, until=inf, after=NONE, follower=NONE, other_follower=NONE, next_ready=NONE
        )
        self._state.flows[place] = blank[0]
        record = self._state.flows[place]
        whole = slice_size // self._payload * self._payload  # a rest would travel as a packet of its own
        record.slice = whole or max(slice_size, self._payload * ROUNDING)
        record.first_answer, record.level = NONE, level
        self.lead_over(place, way)
        forth, record.back_s = self._delays(way)
        if TRANSPORTS[self._model.transport] == HPCC:
            for values in self._state.seen:
                values[place] = 0.0
        begin(self._state, place, forth + record.back_s, self._now)
        self._present.add(place)
        return place

    def remove(self, place: int) -> None:
        """Forget the flow at ``place``; its packets that are under way travel on, and nobody hears of them."""
        record = self._state.flows[place]
        record.sending, record.follower, record.other_follower = False, NONE, NONE
        record.message = record.until = inf
        self._left += self.counts_of(place)
        self._present.remove(place)
        self._leaving.append(place)

    def _reclaim(self, place: int) -> bool:
        record = self._state.flows[place]
        if record.packets or record.ready or record.alarm or record.notice or record.asked or record.timer:
            return False
        self._free.append(place)
        return True

    # What a decision changes

    def lead_over(self, place: int, way: Sequence[str], *others: Sequence[str]) -> None:
        """Send the flow's next packets over the links ``way``, or over that and ``others`` as the network balances."""
        ways = (tuple(way), *map(tuple, others))
        if ways not in self._paths:
            self._paths[ways] = self._put_paths(ways)
        record = self._state.flows[place]
        record.path, record.paths = self._paths[ways], len(ways)

    def _put_paths(self, ways: Sequence[Sequence[str]]) -> int:
        first = self._used_paths
        self._used_paths += len(ways)
        self._make_room_for_paths(self._used_paths, max(map(len, ways)))
        for number, way in enumerate(ways, first):
            self._state.paths[number] = NONE
            self._state.paths[number, : len(way)] = [self.number[link] for link in way]
        return first

    def degrade(self, link: str, share: float, loss: float) -> None:
        """Let ``link`` have a ``share`` of its rate from now on, and lose a share ``loss`` of its packets."""
        record = self._state.links[self.number[link]]
        record.rate, record.loss = self._rates[link] * share, loss

    def set_level(self, place: int, level: int, until: float = inf) -> None:
        """Mark the next packets for ``level``; an event comes when ``until`` bytes of the message have been sent."""
        record = self._state.flows[place]
        record.level, record.until = level, until

    def set_limit(self, place: int, bytes_per_s: float) -> None:
        """Let the flow be no faster; infinite for no limit."""
        self._state.flows[place].limit = bytes_per_s
        let_send(self._state, place, self._now)

    def weigh(self, place: int, weights: Sequence[float], period: float) -> None:
        """Weights stand for windows of different sizes, which congestion control chooses itself: ``RunFailedError``."""
        raise RunFailedError(
            f"the scheduler gives flows weights, which transport {self._model.transport} does not have, expected window"
        )

    # Messages

    def begin(self, place: int, size: float, lead: float, after: int | None, consumed: float) -> None:
        """Start a message. Past ``lead`` it forwards what ``after`` brings beyond ``consumed`` bytes of its total."""
        record = self._state.flows[place]
        record.message, record.lead, record.leader_total = size, lead, consumed
        record.sent = record.arrived = 0.0
        if self._state.rules.recovery == GO_BACK_N:  # packets that were sent twice may still be under way
            record.generation += 1
            record.first_generation, record.in_flight, record.lost = record.generation, 0.0, False
        record.through = False
        record.after = NONE if after is None else after
        if after is not None:
            note_follower(columns(self._state.flows), place, after)

    def send(self, place: int, sending: bool) -> None:
        """Let the message flow, or stop it for now."""
        self._state.flows[place].sending = sending
        if sending:
            let_send(self._state, place, self._now)

    def sent(self, place: int) -> float:
        """Bytes of the current message that are in packets."""
        return float(self._state.flows[place].sent)

    def ended(self, place: int) -> bool:
        """Whether all of the current message has arrived."""
        return bool(self._state.flows[place].through)

    def total(self, place: int) -> float:
        """Bytes of all messages that have arrived."""
        return float(self._state.flows[place].total)

    def departure_s(self, job: Job) -> float:
        """Links have no token buckets: nothing leaves ahead of their rate."""
        return 0.0

    def link_is_busy(self, place: int) -> bool:
        """Whether packets wait at the first link of the flow."""
        state = self._state
        link = int(state.paths[state.flows[place].path, 0])
        return bool(state.links[link].free_s > self._now)

    def hold_back_s(self, place: int, departure: float) -> float:
        """A message whose flow has a limit ends a packet early, and nothing makes up for that."""
        return 0.0

    def hops(self, place: int) -> int:
        """0: packets have their delays already."""
        return 0

    def _delays(self, way: Sequence[str]) -> tuple[float, float]:
        """Seconds that a packet takes over ``way`` when nothing else is there, and its answer back, which is short."""
        links = [self._state.links[self.number[link]] for link in way]
        delay = sum(float(link.delay) for link in links)
        size = self._state.rules.payload + self._state.rules.header
        return delay + sum(size / float(link.rate) for link in links), delay

    # Time

    def run(self, now: float, until: float) -> tuple[float, list[int]]:
        """Go on from ``now`` to the next event, at most to ``until``; return when that is.

        And the places whose message is through or has reached its count of bytes. ``RunFailedError`` if packets wait
        for each other for ever.
        """
        counters = self._state.counters
        while True:
            now = float(simulate(self._state, now, until))
            if not counters.short[0]:
                break
            self._make_room()
            go_on(self._state, now)
        self._now = now
        if counters.planned[0] == 0 and counters.unused[0] < len(self._state.unused):
            raise RunFailedError(stuck(self._state, self._names))
        found = self._state.reached[: counters.reached[0]].tolist()
        counters.reached[0] = 0
        return now, list(dict.fromkeys(found))

    def take_bytes(self) -> dict[tuple[str, int], float]:
        """(link, level) -> bytes sent since the last call."""
        return taken(self._names, columns(self._state.queues)["sent"])

    def take_queues(self) -> dict[tuple[str, int], QueueSample]:
        """(link, level) -> what waits there and has happened since the last time, where anything has."""
        return self._reader.take(self._state, self._now)

    def counts_of(self, place: int) -> PacketCounts:
        """What has happened to the packets of a flow."""
        return counts_of_flow(self._state.flows[place])

    def counted(self) -> dict[str, float]:
        """What has happened since the beginning, by the names of :data:`COUNTED`, and hops of packets."""
        present = (self.counts_of(place) for place in self._present)
        return {**sum(present, self._left).values(), **counts_of_network(self._state, self._now)}

    # Room

    def _make_room_for_flows(self) -> None:
        """Twice as many flows."""
        state, room = self._state, len(self._state.flows)
        self._state = state._replace(
            flows=more_records(state.flows, kinds.FLOW, room),
            seen=Stamps(*(longer(values, room if len(values) > 1 else 0) for values in state.seen)),
            agenda=more_records(state.agenda, kinds.EVENT, 5 * room),
            reached=longer(state.reached, len(state.reached)),
        )
        self._free = list(range(2 * room - 1, room - 1, -1))

    def _make_room(self) -> None:
        """For twice as many packets if there are no unused ones, or else for more pauses on their way."""
        self._state.counters.short[0] = 0
        if self._state.counters.unused[0] == 0:
            self._make_room_for_packets()
        else:
            agenda = self._state.agenda
            self._state = self._state._replace(agenda=more_records(agenda, kinds.EVENT, len(agenda)))

    def _make_room_for_packets(self) -> None:
        """Twice as many packets."""
        state, room = self._state, len(self._state.packets)
        self._state = state._replace(
            packets=more_records(state.packets, kinds.PACKET, room),
            agenda=more_records(state.agenda, kinds.EVENT, room),
            stamps=Stamps(*(longer(values, room if len(values) > 1 else 0) for values in state.stamps)),
            unused=longer(np.arange(room, 2 * room, dtype=np.int32), room),
        )
        state.counters.unused[0] = room

    def _make_room_for_paths(self, count: int, hops: int) -> None:
        """Room for ``count`` paths of up to ``hops`` links."""
        state = self._state
        rows, width = max(len(state.paths), 2 * count), max(state.paths.shape[1], hops + 1)
        if count <= len(state.paths) and width == state.paths.shape[1]:
            return
        paths = np.full((rows, width), NONE)
        paths[: len(state.paths), : state.paths.shape[1]] = state.paths
        self._state = state._replace(
            paths=paths,
            stamps=Stamps(*(wider(values, width) for values in state.stamps)),
            seen=Stamps(*(wider(values, width) for values in state.seen)),
        )
