"""Messages as packets on the links of a fabric, as an emulation at the experiment's scale sends them.

The simulation has what an emulation sets: packet size, windows, packets in a NIC, slices, token buckets, strict
priority. It has no operating system: nothing is ever late. All sizes in bytes of the scenario, times in its seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from testbed.engines.common.worker_plan import departure_s, weighted_packets, window_packets
from testbed.engines.flow.networks.arrays import longer, taken, wider
from testbed.engines.flow.networks.network import PacketCounts, QueueSample
from testbed.engines.flow.networks.records import columns, more_records, note_follower, records
from testbed.experiment.experiment import Experiment
from testbed.packets import state as kinds
from testbed.packets.flows import ROUNDING, try_later
from testbed.packets.links import fill_bucket
from testbed.packets.simulate import simulate
from testbed.packets.state import NONE, Counters, Rules, State
from topologies.shaping import (
    BURST_S,
    DEFAULT_LEVELS,
    ETHERNET_HEADER,
    NIC_QUEUE_PACKETS,
    TCP_IP_HEADER,
    payload_share,
    segment_size,
)
from workloads.job import Job

ACKNOWLEDGED_TOGETHER: Final = 2
"""Packets that an acknowledgement covers: that of every second full packet comes at once (RFC 1122, 4.2.3.2)."""
_FIRST_ROOM: Final = 64


class PacketNetwork:
    """Flows in numbered places; a place is used again when no packet of its flow is under way any more."""

    def __init__(self, capacity: Mapping[str, float], experiment: Experiment) -> None:
        """``capacity``: link -> bit/s of the scenario; ``experiment`` has the scale that the packets are of."""
        self.number: Mapping[str, int] = {link: number for number, link in enumerate(capacity)}
        self._names = list(capacity)
        self._experiment = experiment
        self._packet = experiment.scale.unscale_size(segment_size(experiment.scale.mtu))
        self._window = window_packets(experiment)
        self._whole = np.array(list(capacity.values())) / 8
        self._state = _empty(self._whole, experiment)
        self._now = 0.0
        self._flows, self._links = columns(self._state.flows), columns(self._state.links)
        self._free = list(range(_FIRST_ROOM - 1, -1, -1))
        self._leaving: list[int] = []
        self._paths: dict[tuple[tuple[str, ...], ...], int] = {}
        self._used_paths = 0
        self._groups: dict[frozenset[str], int] = {}

    def add(self, way: Sequence[str], level: int, slice_size: float = 0.0) -> int:
        """Take a flow in that forwards what comes in by slices of ``slice_size`` bytes; return its place."""
        self._leaving = [place for place in self._leaving if not self._reclaim(place)]
        if not self._free:
            self._make_room_for_flows()
        place = self._free.pop()
        blank = records(
            1, kinds.FLOW, limit=inf, until=inf, after=NONE, follower=NONE, other_follower=NONE, oldest=NONE
        )
        self._state.flows[place] = blank[0]
        self._flows["slice"][place] = max(slice_size, self._packet * ROUNDING)
        self._flows["level"][place] = level
        self.weigh(place, (), 0.0)
        self.lead_over(place, way)
        return place

    def remove(self, place: int) -> None:
        """Forget the flow at ``place``; its packets that are under way travel on, and nobody hears of them."""
        flows = self._flows
        flows["sending"][place] = False
        flows["follower"][place] = flows["other_follower"][place] = NONE
        flows["message"][place] = flows["until"][place] = inf
        self._leaving.append(place)

    def _reclaim(self, place: int) -> bool:
        """Take the place of a flow that was removed, if nothing of it is left."""
        flows = self._flows
        under_way = flows["sent"][place] - flows["arrived"][place] > ROUNDING * self._packet
        if under_way or flows["to_try"][place] or flows["alarm"][place]:
            return False
        self._free.append(place)
        return True

    # What a decision changes

    def lead_over(self, place: int, way: Sequence[str], *others: Sequence[str]) -> None:
        """Send the flow's next packets over the links ``way``, or over that and ``others`` in turn or at random."""
        key = (tuple(way), *map(tuple, others))
        if key not in self._paths:
            self._paths[key] = self._used_paths
            for each in key:
                self._make_room_for_path(self._used_paths, len(each))
                self._state.paths[self._used_paths, : len(each)] = [self.number[link] for link in each]
                self._used_paths += 1
        self._flows["path"][place], self._flows["paths"][place] = self._paths[key], len(key)
        if others:
            self._flows["group"][place] = self._group(key)

    def _group(self, ways: Sequence[tuple[str, ...]]) -> int:
        """The number of a switch's group, that of the links where ``ways`` part: flows that come there share it."""
        hop = next(hop for hop, links in enumerate(zip(*ways, strict=False)) if len(set(links)) > 1)
        number = self._groups.setdefault(frozenset(way[hop] for way in ways), len(self._groups))
        if number >= len(self._state.turns):
            self._state = self._state._replace(turns=longer(self._state.turns, len(self._state.turns)))
        return number

    def degrade(self, link: str, share: float, loss: float) -> None:
        """Let ``link`` have a ``share`` of its rate from now on; what is lost takes its time and does not count."""
        number = self.number[link]
        fill_bucket(self._state, number, self._now)
        self._links["rate"][number] = self._whole[number] * share * (1.0 - loss)

    def set_level(self, place: int, level: int, until: float = inf) -> None:
        """Mark the next packets for ``level``; an event comes when ``until`` bytes of the message have been sent."""
        self._flows["level"][place], self._flows["until"][place] = level, until

    def set_limit(self, place: int, bytes_per_s: float) -> None:
        """Let the flow be no faster; infinite for no limit."""
        self._flows["limit"][place] = bytes_per_s
        try_later(self._state, place)

    def weigh(self, place: int, weights: Sequence[float], period: float) -> None:
        """Let the flow have windows in proportion to ``weights``, each for an equal part of every ``period`` bytes."""
        packets = weighted_packets(weights) if weights else [self._window]
        if len(packets) > self._state.windows.shape[1]:
            self._state = self._state._replace(windows=wider(self._state.windows, len(packets)))
        self._state.windows[place, : len(packets)] = [count * self._packet for count in packets]
        self._flows["windows"][place], self._flows["period"][place] = len(packets), period

    # Messages

    def begin(self, place: int, size: float, lead: float, after: int | None, consumed: float) -> None:
        """Start a message. Past ``lead`` it forwards what ``after`` brings beyond ``consumed`` bytes of its total."""
        flows = self._flows
        flows["message"][place], flows["lead"][place], flows["leader_total"][place] = size, lead, consumed
        flows["sent"][place] = flows["arrived"][place] = flows["in_flight"][place] = 0.0
        flows["through"][place], flows["unacknowledged"][place] = False, 0
        flows["after"][place] = NONE if after is None else after
        if after is not None:
            note_follower(flows, place, after)

    def send(self, place: int, sending: bool) -> None:
        """Let the message flow, or stop it for now."""
        self._flows["sending"][place] = sending
        if sending:
            try_later(self._state, place)

    def sent(self, place: int) -> float:
        """Bytes of the current message that are in packets."""
        return float(self._flows["sent"][place])

    def ended(self, place: int) -> bool:
        """Whether all of the current message has arrived."""
        return bool(self._flows["through"][place])

    def total(self, place: int) -> float:
        """Bytes of all messages that have arrived."""
        return float(self._flows["total"][place])

    def departure_s(self, job: Job) -> float:
        """Seconds by which the links by which ``job`` leaves its hosts let a burst start ahead of their rate."""
        return departure_s(job, self._experiment) / self._experiment.scale.time

    def link_is_busy(self, place: int) -> bool:
        """Whether packets wait at the first link of the flow."""
        return bool(self._links["waiting"][self._first_link(place)])

    def hold_back_s(self, place: int, departure: float) -> float:
        """By how much the message would end earlier than the flow's limit implies if it began after ``departure``.

        Its first packet leaves at once, so its last one leaves a packet early.
        """
        size, limit = self._flows["message"][place], self._flows["limit"][place]
        if limit == inf or size == 0.0:
            return 0.0
        rate = self._links["rate"][self._first_link(place)]
        ahead = min(size, self._packet) / limit - departure
        return float(max(0.0, min(ahead, size / limit - size / rate)))

    def hops(self, place: int) -> int:
        """Links on the way of the flow."""
        return int(np.count_nonzero(self._state.paths[self._flows["path"][place]] != NONE))

    def _first_link(self, place: int) -> int:
        return int(self._state.paths[self._flows["path"][place], 0])

    # Time

    def run(self, now: float, until: float) -> tuple[float, list[int]]:
        """Go on from ``now`` to the next event, at most to ``until``; return when that is.

        And the places whose message is through or has reached its count of bytes.
        """
        counters = self._state.counters
        while True:
            now = float(simulate(self._state, now, until))
            if not counters.short[0]:
                break
            self._make_room_for_packets()
        self._now = now
        found = self._state.reached[: counters.reached[0]].tolist()
        counters.reached[0] = 0
        return now, list(dict.fromkeys(found))

    def counted(self) -> dict[str, float]:
        """Nothing."""
        return {}

    def counts_of(self, place: int) -> PacketCounts:
        """Nothing."""
        return PacketCounts()

    def take_queues(self) -> dict[tuple[str, int], QueueSample]:
        """(link, level) -> payload that waits there, and the most since the last call, where there was any."""
        queues = columns(self._state.queues)
        queued, longest = np.array(queues["queued"]), np.array(queues["longest"])
        queues["longest"] = queued
        places = np.argwhere(longest > 0.0).tolist()
        return {
            (self._names[link], level): QueueSample(float(queued[link, level]), float(longest[link, level]), 0.0, 0)
            for link, level in places
        }

    def take_bytes(self) -> dict[tuple[str, int], float]:
        """(link, level) -> bytes sent since the last call."""
        return taken(self._names, columns(self._state.queues)["sent"])

    # Room

    def _make_room_for_flows(self) -> None:
        """Twice as many flows."""
        state, room = self._state, len(self._state.flows)
        first = int(state.counters.first_to_try[0])
        state.counters.first_to_try[0] = 0
        self._state = state._replace(
            flows=more_records(state.flows, kinds.FLOW, room),
            windows=longer(state.windows, room),
            agenda=more_records(state.agenda, kinds.EVENT, room),
            to_try=longer(np.roll(state.to_try, -first), room),
            reached=longer(state.reached, len(state.reached)),
        )
        self._flows = columns(self._state.flows)
        self._free = list(range(2 * room - 1, room - 1, -1))

    def _make_room_for_packets(self) -> None:
        """Twice as many packets."""
        state, room = self._state, len(self._state.packets)
        state.counters.unused[0], state.counters.short[0] = room, 0
        self._state = state._replace(
            packets=more_records(state.packets, kinds.PACKET, room), unused=longer(np.arange(room, 2 * room), room)
        )

    def _make_room_for_path(self, number: int, hops: int) -> None:
        """Room for a path of ``hops`` links."""
        paths = self._state.paths
        rows, width = max(len(paths), 2 * number), max(paths.shape[1], hops + 1)
        if (rows, width) != paths.shape:
            more = np.full((rows, width), NONE)
            more[: len(paths), : paths.shape[1]] = paths
            self._state = self._state._replace(paths=more)


def _empty(rates: NDArray[np.float64], experiment: Experiment) -> State:
    """Nothing under way; every bucket is full. ``rates`` [links] in bytes per second."""
    scale, room = experiment.scale, _FIRST_ROOM
    rules = Rules(
        payload=float(scale.unscale_size(segment_size(scale.mtu))),
        header=float(scale.unscale_size(TCP_IP_HEADER + ETHERNET_HEADER)),
        payload_share=float(payload_share(scale.mtu)),
        bucket_s=float(BURST_S / scale.time),
        at_nic=NIC_QUEUE_PACKETS,
        acknowledged_together=ACKNOWLEDGED_TOGETHER,
        at_random=experiment.load_balancing == "spray",
    )
    counters = Counters(*(np.zeros(1, np.int64) for _ in Counters._fields))
    counters.unused[0] = room
    queues = records(len(rates) * DEFAULT_LEVELS, kinds.QUEUE, first=NONE, last=NONE)
    return State(
        flows=records(room, kinds.FLOW),
        links=records(len(rates), kinds.LINK, rate=rates, tokens=rules.bucket_s * rates),
        queues=queues.reshape(len(rates), DEFAULT_LEVELS),
        packets=records(room, kinds.PACKET),
        agenda=records(len(rates) + room, kinds.EVENT),
        rules=rules,
        windows=np.zeros((room, 1)),
        paths=np.full((1, 1), NONE),
        unused=np.arange(room),
        to_try=np.zeros(room, np.int64),
        reached=np.zeros(2 * room, np.int64),
        turns=np.zeros(room, np.int64),
        counters=counters,
    )
