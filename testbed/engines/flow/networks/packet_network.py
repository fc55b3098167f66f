"""Messages as packets on the links of a fabric, as an emulation at the experiment's scale sends them.

The simulation has what an emulation sets: packet size, windows, packets in a NIC, slices, token buckets, strict
priority. It has no operating system: nothing is ever late. All sizes in bytes of the scenario, times in its seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from testbed.engines.common.worker_plan import departure_s, weighted_packets, window_packets
from testbed.engines.flow.networks.arrays import longer, taken
from testbed.engines.flow.networks.network import PacketCounts, QueueSample
from testbed.experiment.experiment import Experiment
from testbed.packets import state as columns
from testbed.packets.flows import ROUNDING, try_later
from testbed.packets.simulate import simulate
from testbed.packets.state import NONE, Agenda, Flows, Integers, Links, Packets, Rules, State
from topologies.fabric import Fabric
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
Number = TypeVar("Number", bound=np.generic)


class PacketNetwork:
    """Flows in numbered places; a place is used again when no packet of its flow is under way any more."""

    def __init__(self, capacity: Mapping[str, float], experiment: Experiment) -> None:
        """``capacity``: link -> bit/s of the scenario; ``experiment`` has the scale that the packets are of."""
        self.number: Mapping[str, int] = {link: number for number, link in enumerate(capacity)}
        self._names = list(capacity)
        self._experiment = experiment
        self._packet = experiment.scale.unscale_size(segment_size(experiment.scale.mtu))
        self._window = window_packets(experiment)
        self._state = _empty(np.array(list(capacity.values())) / 8, experiment)
        self._free = list(range(_FIRST_ROOM - 1, -1, -1))
        self._leaving: list[int] = []
        self._paths: dict[tuple[str, ...], int] = {}

    def add(self, way: Sequence[str], level: int, slice_size: float = 0.0) -> int:
        """Take a flow in that forwards what comes in by slices of ``slice_size`` bytes; return its place."""
        self._leaving = [place for place in self._leaving if not self._reclaim(place)]
        if not self._free:
            self._make_room_for_flows()
        place = self._free.pop()
        flows = self._state.flows
        flows.values[place], flows.numbers[place] = 0.0, 0
        flows.values[place, [columns.LIMIT, columns.UNTIL]] = inf
        flows.values[place, columns.SLICE] = max(slice_size, self._packet * ROUNDING)
        flows.numbers[place, [columns.AFTER, columns.FOLLOWER, columns.OLDEST]] = NONE
        flows.numbers[place, columns.LEVEL] = level
        self.weigh(place, (), 0.0)
        self.lead_over(place, way)
        return place

    def remove(self, place: int) -> None:
        """Forget the flow at ``place``; its packets that are under way travel on, and nobody hears of them."""
        self._state.flows.numbers[place, [columns.SENDING, columns.FOLLOWER]] = 0, NONE
        self._state.flows.values[place, [columns.SIZE, columns.UNTIL]] = inf
        self._leaving.append(place)

    def _reclaim(self, place: int) -> bool:
        """Take the place of a flow that was removed, if nothing of it is left."""
        values, numbers = self._state.flows.values[place], self._state.flows.numbers[place]
        under_way = values[columns.SENT] - values[columns.ARRIVED] > ROUNDING * self._packet
        if under_way or numbers[columns.TO_TRY] or numbers[columns.ALARM]:
            return False
        self._free.append(place)
        return True

    # What a decision changes

    def lead_over(self, place: int, way: Sequence[str]) -> None:
        """Send the flow's next packets over the links ``way``."""
        key = tuple(way)
        if key not in self._paths:
            self._paths[key] = len(self._paths)
            self._make_room_for_path(self._paths[key], len(key))
            self._state.paths[self._paths[key], : len(key)] = [self.number[link] for link in key]
        self._state.flows.numbers[place, columns.PATH] = self._paths[key]

    def links_changed(self, fabric: Fabric) -> None:
        """Flows are led as decided, and decisions avoid what has failed."""

    def set_level(self, place: int, level: int, until: float = inf) -> None:
        """Mark the next packets for ``level``; an event comes when ``until`` bytes of the message have been sent."""
        self._state.flows.numbers[place, columns.LEVEL] = level
        self._state.flows.values[place, columns.UNTIL] = until

    def set_limit(self, place: int, bytes_per_s: float) -> None:
        """Let the flow be no faster; infinite for no limit."""
        self._state.flows.values[place, columns.LIMIT] = bytes_per_s
        try_later(self._state, place)

    def weigh(self, place: int, weights: Sequence[float], period: float) -> None:
        """Let the flow have windows in proportion to ``weights``, each for an equal part of every ``period`` bytes."""
        packets = weighted_packets(weights) if weights else [self._window]
        flows = self._state.flows
        if len(packets) > flows.windows.shape[1]:
            more = np.zeros((len(flows.windows), len(packets) - flows.windows.shape[1]))
            flows = flows._replace(windows=np.ascontiguousarray(np.concatenate((flows.windows, more), axis=1)))
            self._state = self._state._replace(flows=flows)
        flows.windows[place, : len(packets)] = [count * self._packet for count in packets]
        flows.numbers[place, columns.WINDOWS] = len(packets)
        flows.values[place, columns.PERIOD] = period

    # Messages

    def begin(self, place: int, size: float, lead: float, after: int | None, consumed: float) -> None:
        """Start a message. Past ``lead`` it forwards what ``after`` brings beyond ``consumed`` bytes of its total."""
        values, numbers = self._state.flows.values[place], self._state.flows.numbers[place]
        values[columns.SIZE], values[columns.LEAD], values[columns.BASE] = size, lead, consumed
        values[[columns.SENT, columns.ARRIVED, columns.IN_FLIGHT]] = 0.0
        numbers[[columns.THROUGH, columns.UNACKNOWLEDGED]] = 0
        numbers[columns.AFTER] = NONE if after is None else after
        if after is not None:
            self._state.flows.numbers[after, columns.FOLLOWER] = place

    def send(self, place: int, sending: bool) -> None:
        """Let the message flow, or stop it for now."""
        self._state.flows.numbers[place, columns.SENDING] = int(sending)
        if sending:
            try_later(self._state, place)

    def sent(self, place: int) -> float:
        """Bytes of the current message that are in packets."""
        return float(self._state.flows.values[place, columns.SENT])

    def ended(self, place: int) -> bool:
        """Whether all of the current message has arrived."""
        return bool(self._state.flows.numbers[place, columns.THROUGH])

    def total(self, place: int) -> float:
        """Bytes of all messages that have arrived."""
        return float(self._state.flows.values[place, columns.TOTAL])

    def departure_s(self, job: Job) -> float:
        """Seconds by which the links by which ``job`` leaves its hosts let a burst start ahead of their rate."""
        return departure_s(job, self._experiment) / self._experiment.scale.time

    def link_is_busy(self, place: int) -> bool:
        """Whether packets wait at the first link of the flow."""
        state = self._state
        return bool(state.links.waiting[state.paths[state.flows.numbers[place, columns.PATH], 0]])

    def hold_back_s(self, place: int, departure: float) -> float:
        """By how much the message would end earlier than the flow's limit implies if it began after ``departure``.

        Its first packet leaves at once, so its last one leaves a packet early.
        """
        values, state = self._state.flows.values[place], self._state
        size, limit = values[columns.SIZE], values[columns.LIMIT]
        if limit == inf or size == 0.0:
            return 0.0
        first_link = state.paths[state.flows.numbers[place, columns.PATH], 0]
        ahead = min(size, self._packet) / limit - departure
        return float(max(0.0, min(ahead, size / limit - size / state.links.rate[first_link])))

    def hops(self, place: int) -> int:
        """Links on the way of the flow."""
        return int(np.count_nonzero(self._state.paths[self._state.flows.numbers[place, columns.PATH]] != NONE))

    # Time

    def run(self, now: float, until: float) -> tuple[float, list[int]]:
        """Go on from ``now`` to the next event, at most to ``until``; return when that is.

        And the places whose message is through or has reached its count of bytes.
        """
        counters = self._state.counters
        while True:
            now = float(simulate(self._state, now, until))
            if not counters[columns.SHORT]:
                break
            self._make_room_for_packets()
        found = self._state.reached[: counters[columns.REACHED]].tolist()
        counters[columns.REACHED] = 0
        return now, list(dict.fromkeys(found))

    def counted(self) -> dict[str, float]:
        """Nothing."""
        return {}

    def counts_of(self, place: int) -> PacketCounts:
        """Nothing."""
        return PacketCounts()

    def take_queues(self) -> dict[tuple[str, int], QueueSample]:
        """Nothing: there are no queues, or they are as short as windows let them be."""
        return {}

    def take_bytes(self) -> dict[tuple[str, int], float]:
        """(link, level) -> bytes sent since the last call."""
        return taken(self._names, self._state.links.sent)

    # Room

    def _make_room_for_flows(self) -> None:
        """Twice as many flows."""
        state, room = self._state, len(self._state.to_try)
        first = int(state.counters[columns.FIRST_TO_TRY])
        state.counters[columns.FIRST_TO_TRY] = 0
        flows, agenda = state.flows, state.agenda
        self._state = state._replace(
            flows=Flows(longer(flows.values, room), longer(flows.numbers, room), longer(flows.windows, room)),
            agenda=Agenda(longer(agenda.time, room), longer(agenda.what, room)),
            to_try=longer(np.roll(state.to_try, -first), room),
            reached=longer(state.reached, len(state.reached)),
        )
        self._free = list(range(2 * room - 1, room - 1, -1))

    def _make_room_for_packets(self) -> None:
        """Twice as many packets."""
        old, room = self._state.packets, len(self._state.packets.size)
        twice = Packets(
            size=longer(old.size, room),
            flow=longer(old.flow, room),
            path=longer(old.path, room),
            hop=longer(old.hop, room),
            level=longer(old.level, room),
            behind=longer(old.behind, room),
            later=longer(old.later, room),
            landed=longer(old.landed, room),
            unused=longer(np.arange(room, 2 * room), room),
        )
        self._state.counters[columns.UNUSED] = room
        self._state.counters[columns.SHORT] = 0
        self._state = self._state._replace(packets=twice)

    def _make_room_for_path(self, number: int, hops: int) -> None:
        """Room for a path of ``hops`` links."""
        paths = self._state.paths
        rows, width = max(len(paths), 2 * number), max(paths.shape[1], hops + 1)
        if (rows, width) != paths.shape:
            more = np.full((rows, width), NONE)
            more[: len(paths), : paths.shape[1]] = paths
            self._state = self._state._replace(paths=more)


def _none(room: int) -> Integers:
    return np.full(room, NONE)


def _empty(rates: NDArray[np.float64], experiment: Experiment) -> State:
    """Nothing under way; every bucket is full. ``rates`` [links] in bytes per second."""
    scale, links, room = experiment.scale, len(rates), _FIRST_ROOM
    bucket_s = BURST_S / scale.time
    rules = Rules(
        payload=float(scale.unscale_size(segment_size(scale.mtu))),
        header=float(scale.unscale_size(TCP_IP_HEADER + ETHERNET_HEADER)),
        payload_share=float(payload_share(scale.mtu)),
        bucket_s=float(bucket_s),
        at_nic=NIC_QUEUE_PACKETS,
        acknowledged_together=ACKNOWLEDGED_TOGETHER,
    )
    counters = np.zeros(columns.COUNTERS, np.int64)
    counters[columns.UNUSED] = room
    queues = np.full((links, DEFAULT_LEVELS), NONE)
    return State(
        Flows(np.zeros((room, columns.VALUES)), np.zeros((room, columns.NUMBERS), np.int64), np.zeros((room, 1))),
        Links(
            rates,
            bucket_s * rates,
            np.zeros(links),
            np.zeros(links, np.bool_),
            queues,
            queues.copy(),
            np.zeros((links, DEFAULT_LEVELS)),
        ),
        Packets(
            size=np.zeros(room),
            flow=_none(room),
            path=_none(room),
            hop=_none(room),
            level=_none(room),
            behind=_none(room),
            later=_none(room),
            landed=np.zeros(room, np.bool_),
            unused=np.arange(room),
        ),
        Agenda(np.zeros(links + room), np.zeros(links + room, np.int64)),
        rules,
        np.full((1, 1), NONE),
        np.zeros(room, np.int64),
        np.zeros(2 * room, np.int64),
        counters,
    )
