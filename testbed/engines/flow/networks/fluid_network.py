"""Messages as fluids on the links of a fabric: who sends how fast, and when that changes next.

Exact between events: rates are constant until a message ends, a ring's flow catches up with the one
it forwards, or a count of bytes reaches a threshold. All sizes in bytes, rates in bytes per second.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np

from testbed.engines.flow import message_arrays
from testbed.engines.flow.columns import (
    BASE,
    BOOKED,
    COLUMNS,
    HEAVIER,
    LEAD,
    LIMIT,
    NOBODY,
    RATE,
    SENT,
    SIZE,
    SLICE,
    TOTAL,
    UNTIL,
    WAITS,
    WEIGHT,
)
from testbed.engines.flow.columns import ROUNDING as ROUNDING
from testbed.engines.flow.networks.affected_flows import update_rates
from testbed.engines.flow.networks.network import PacketCounts, QueueSample
from testbed.fluid.compiled import compiled, compiled_or
from testbed.fluid.maxmin import MAX_MIN, Flags, Floats, Integers, rates
from topologies.shaping import DEFAULT_LEVELS
from workloads.job import Job

_FIRST_ROOM: Final = 64


@dataclass(frozen=True, slots=True)
class _Weighing:
    weights: tuple[float, ...]
    part: float
    """Bytes for which each weight holds."""


class FluidNetwork:
    """Flows in numbered places, which are used again when a flow is removed: memory grows with running flows only."""

    def __init__(self, capacity: Mapping[str, float], *, proportional: bool = False) -> None:
        """``capacity``: link -> bit/s. ``proportional``: flows of a level share links as fixed windows do."""
        self._waiting_s = np.zeros((DEFAULT_LEVELS, len(capacity))) if proportional else MAX_MIN
        self.number = {link: number for number, link in enumerate(capacity)}
        self._names = list(capacity)
        self._whole: Floats = np.array(list(capacity.values())) / 8
        self._capacity = self._whole.copy()
        self._values: Floats = np.zeros((_FIRST_ROOM, COLUMNS))
        self._levels: Integers = np.zeros(_FIRST_ROOM, np.int64)
        self._ways: Integers = np.full((_FIRST_ROOM, 1), NOBODY, np.int64)
        self._parts: Floats = np.zeros((_FIRST_ROOM, 1))
        self._hops: Integers = np.zeros(_FIRST_ROOM, np.int64)
        self._after: Integers = np.full(_FIRST_ROOM, NOBODY, np.int64)
        self._sending: Flags = np.zeros(_FIRST_ROOM, np.bool_)
        self._free = list(range(_FIRST_ROOM - 1, -1, -1))
        self._booked: dict[tuple[int, int], float] = {}
        self._weighing: dict[int, _Weighing] = {}
        self._followed = self._after.copy()
        self._active: Integers | None = None
        self._changed: Flags = np.zeros(_FIRST_ROOM, np.bool_)
        self._to_settle: list[int] = []
        self._changed_links: Flags = np.zeros(len(capacity), np.bool_)
        self._stale = True

    def add(self, way: Sequence[str], level: int, slice_size: float = 0.0) -> int:
        """Take a flow in; return its place. A fluid forwards what comes in, not slices of ``slice_size`` bytes."""
        if not self._free:
            self._grow()
        place = self._free.pop()
        self._values[place] = 0.0
        self._values[place, [LIMIT, UNTIL, HEAVIER]] = inf
        self._values[place, WEIGHT] = 1.0
        self._after[place], self._levels[place] = NOBODY, level
        self.lead_over(place, way)
        return place

    def remove(self, place: int) -> None:
        """Forget the flow at ``place``."""
        self._book(place)
        self._leave_links(place)
        self._sending[place], self._active, self._ways[place] = False, None, NOBODY
        self._weighing.pop(place, None)
        self._free.append(place)

    def _change(self, place: int) -> None:
        """Have the rates of the flow, and of those that it affects, computed again."""
        self._changed[place] = self._stale = True
        self._to_settle.append(place)

    def _leave_links(self, place: int) -> None:
        """Have rates on the links of the flow computed again: it leaves them."""
        self._changed_links[self._ways[place][self._ways[place] >= 0]] = True
        self._change(place)

    def _grow(self) -> None:
        room = len(self._levels)
        self._values = np.concatenate((self._values, np.zeros((room, COLUMNS))))
        self._levels = np.concatenate((self._levels, np.zeros(room, np.int64)))
        self._ways = np.concatenate((self._ways, np.full((room, self._ways.shape[1]), NOBODY, np.int64)))
        self._parts = np.concatenate((self._parts, np.zeros((room, self._parts.shape[1]))))
        self._hops = np.concatenate((self._hops, np.zeros(room, np.int64)))
        self._after = np.concatenate((self._after, np.full(room, NOBODY, np.int64)))
        self._sending = np.concatenate((self._sending, np.zeros(room, np.bool_)))
        self._changed = np.concatenate((self._changed, np.zeros(room, np.bool_)))
        self._followed = np.concatenate((self._followed, np.full(room, NOBODY, np.int64)))
        self._free = list(range(2 * room - 1, room - 1, -1))

    # What a decision changes

    def lead_over(self, place: int, way: Sequence[str], *others: Sequence[str]) -> None:
        """Send the flow over the links ``way`` from now on, or equal parts of it over that and ``others``."""
        self._book(place)
        self._leave_links(place)
        ways = (way, *others)
        parts: dict[str, float] = {}
        for link in itertools.chain.from_iterable(ways):
            parts[link] = parts.get(link, 0.0) + 1.0
        count = len(parts)
        if count > self._ways.shape[1]:
            more = (len(self._levels), count - self._ways.shape[1])
            self._ways = np.concatenate((self._ways, np.full(more, NOBODY, np.int64)), axis=1)
            self._parts = np.concatenate((self._parts, np.zeros(more)), axis=1)
        self._ways[place], self._parts[place], self._hops[place] = NOBODY, 0.0, len(way)
        self._ways[place, :count] = [self.number[link] for link in parts]
        self._parts[place, :count] = [part / len(ways) for part in parts.values()]

    def degrade(self, link: str, share: float, loss: float) -> None:
        """Let ``link`` have a ``share`` of its rate from now on; what is lost takes its time and does not count."""
        number = self.number[link]
        self._capacity[number] = self._whole[number] * share * (1.0 - loss)
        self._changed_links[number] = self._stale = True

    def set_level(self, place: int, level: int, until: float = inf) -> None:
        """Serve the flow at ``level``; an event comes when it has sent ``until`` bytes of its message."""
        if self._levels[place] != level:
            self._book(place)
            self._levels[place] = level
            self._change(place)
        self._values[place, UNTIL] = until

    def set_limit(self, place: int, bytes_per_s: float) -> None:
        """Let the flow be no faster; infinite for no limit."""
        if self._values[place, LIMIT] != bytes_per_s:
            self._values[place, LIMIT] = bytes_per_s
            self._change(place)

    def weigh(self, place: int, weights: Sequence[float], period: float) -> None:
        """Let the flow share links of its level by ``weights``, each for an equal part of every ``period`` bytes.

        No weights are a weight of 1.
        """
        if not weights:
            self._weighing.pop(place, None)
            self._values[place, [WEIGHT, HEAVIER]] = 1.0, inf
        else:
            self._weighing[place] = _Weighing(tuple(weights), period / len(weights))
            self._take_weight(place)
        self._change(place)

    def _take_weight(self, place: int) -> None:
        """Take the weight of the part of its period that the flow is in."""
        weighing, total = self._weighing[place], self._values[place, TOTAL]
        part = int(total / weighing.part + ROUNDING)
        self._values[place, WEIGHT] = weighing.weights[part % len(weighing.weights)]
        self._values[place, HEAVIER] = (part + 1) * weighing.part

    # Messages

    def begin(self, place: int, size: float, lead: float, after: int | None, consumed: float) -> None:
        """Start a message. Past ``lead`` it forwards what ``after`` brings beyond ``consumed`` bytes of its total."""
        values = self._values[place]
        values[SIZE], values[SENT], values[LEAD], values[BASE] = size, 0.0, lead, consumed
        values[WAITS] = 0.0
        self._after[place] = NOBODY if after is None else after
        self._change(place)

    def send(self, place: int, sending: bool) -> None:
        """Let the message flow, or stop it for now."""
        if self._sending[place] != sending:
            self._sending[place], self._active = sending, None
            self._change(place)

    def sent(self, place: int) -> float:
        """Bytes of the current message that have been sent."""
        return float(self._values[place, SENT])

    def ended(self, place: int) -> bool:
        """Whether the current message has been sent whole."""
        return bool(self._values[place, SENT] >= self._values[place, SIZE])

    def total(self, place: int) -> float:
        """Bytes of all messages that have been sent."""
        return float(self._values[place, TOTAL])

    def departure_s(self, job: Job) -> float:
        """A fluid has no packet that leaves before its time."""
        return 0.0

    def link_is_busy(self, place: int) -> bool:
        """No packet waits for a fluid."""
        return False

    def hold_back_s(self, place: int, departure: float) -> float:
        """A fluid leaves as its rate says."""
        return 0.0

    def hops(self, place: int) -> int:
        """Links on the way of the flow."""
        return int(self._hops[place])

    # Time

    def run(self, now: float, until: float) -> tuple[float, list[int]]:
        """Go on from ``now`` to the next event, at most to ``until``; return when that is and what it reaches."""
        then = min(now + self.next_event(), until)
        return then, self.advance(then - now)

    def next_event(self) -> float:
        """Seconds until something changes by itself; infinite if nothing does."""
        self._settle()
        return float(next_change(self._places_sending(), self._after, self._values))

    def advance(self, seconds: float) -> list[int]:
        """Let ``seconds``, not beyond the next event, pass; return places whose message ended or reached its count."""
        self._settle()
        reached: list[int] = advance(self._places_sending(), self._sending, self._values, seconds).tolist()
        for place, weighing in self._weighing.items():
            if self._values[place, TOTAL] >= self._values[place, HEAVIER] - ROUNDING * weighing.part:
                self._take_weight(place)
                self._change(place)
        if reached:
            self._active = None
            self._changed[reached] = True
            self._to_settle += reached
        self._stale = True
        return reached

    def _places_sending(self) -> Integers:
        """Places of the flows that are sending, in order: few of many."""
        if self._active is None:
            self._active = np.flatnonzero(self._sending)
        return self._active

    def _settle(self) -> None:
        """Compute rates again where something has changed."""
        if not self._stale:
            return
        self._stale = False
        active, settled = self._places_sending(), np.array(self._to_settle, np.int64)
        stopped = settled[~self._sending[settled]]
        self._followed[stopped] = NOBODY
        followed = caught_up(active, self._after, self._values)
        turned = active[followed != self._followed[active]]
        self._followed[active] = followed
        self._changed[turned] = True
        if len(self._waiting_s):
            self._share_in_proportion()
        else:
            self._values[stopped, RATE] = 0.0
            update_rates(
                self._values,
                self._changed,
                self._changed_links,
                active,
                self._levels,
                self._ways,
                self._parts,
                self._followed,
                self._capacity,
            )
        self._changed[settled] = self._changed[turned] = False
        self._to_settle.clear()

    def _share_in_proportion(self) -> None:
        """Compute the rates of all flows: waiting times on links couple them."""
        limits, weights = (np.ascontiguousarray(self._values[:, column]) for column in (LIMIT, WEIGHT))
        out, ways, parts = np.zeros(len(self._levels)), self._ways, self._parts
        followed, capacity, waiting_s = self._followed, self._capacity, self._waiting_s
        rates(self._sending, self._levels, ways, parts, limits, weights, followed, capacity, out, waiting_s)
        self._values[:, RATE] = out

    # Bytes on links

    def _book(self, place: int) -> None:
        """Book what the flow has sent since the last booking on its links, at its level."""
        moved = self._values[place, TOTAL] - self._values[place, BOOKED]
        self._values[place, BOOKED] = self._values[place, TOTAL]
        if moved > 0.0:
            there = self._ways[place] >= 0
            for link, part in zip(self._ways[place][there].tolist(), self._parts[place][there].tolist(), strict=True):
                key = (link, int(self._levels[place]))
                self._booked[key] = self._booked.get(key, 0.0) + float(moved) * part

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
        for place in np.flatnonzero(self._values[:, TOTAL] > self._values[:, BOOKED]).tolist():
            self._book(place)
        found = {(self._names[link], level): moved for (link, level), moved in sorted(self._booked.items())}
        self._booked.clear()
        return found


@compiled
def available(place: int, after: Integers, values: Floats) -> float:
    """Bytes that a message may send at once: all that is left, or what it may forward."""
    left: float = values[place, SIZE] - values[place, SENT]
    if after[place] < 0:
        return left
    brought: float = values[after[place], TOTAL] - values[place, BASE]
    forwardable: float = values[place, LEAD] + brought - values[place, SENT]
    return min(left, forwardable)


@compiled_or(message_arrays.caught_up)
def caught_up(active: Integers, after: Integers, values: Floats) -> Integers:
    """Return for each ``active`` flow that has caught up whom it follows, until a slice has come in; -1 for the others.

    Which flows follow is kept in ``values``.
    """
    found = np.full(len(active), NOBODY)
    for row, place in enumerate(active):
        if after[place] >= 0:
            size = values[place, SIZE]
            free = available(place, after, values)
            if free >= size - values[place, SENT] or free >= SLICE * values[place, LEAD] - ROUNDING * size:
                values[place, WAITS] = 0.0
            elif free <= ROUNDING * size:
                values[place, WAITS] = 1.0
            if values[place, WAITS]:
                found[row] = after[place]
    return found


@compiled_or(message_arrays.next_change)
def next_change(active: Integers, after: Integers, values: Floats) -> float:
    """Return the seconds until a message ends, a flow catches up, or a count of bytes is reached."""
    soonest = np.inf
    for place in active:
        rate = values[place, RATE]
        if rate > 0.0:
            sent = values[place, SENT]
            soonest = min(soonest, (values[place, SIZE] - sent) / rate)
            soonest = min(soonest, (values[place, UNTIL] - sent) / rate)
            soonest = min(soonest, (values[place, HEAVIER] - values[place, TOTAL]) / rate)
            if after[place] >= 0:
                free = available(place, after, values)
                closing = rate - values[after[place], RATE]
                left = values[place, SIZE] - sent
                if values[place, WAITS] and closing < 0.0:
                    soonest = min(soonest, max(0.0, SLICE * values[place, LEAD] - free) / -closing)
                elif free < left and free > ROUNDING * values[place, SIZE] and closing > 0.0:
                    soonest = min(soonest, free / closing)
    return max(soonest, 0.0)


@compiled_or(message_arrays.advance)
def advance(active: Integers, sending: Flags, values: Floats, seconds: float) -> Integers:
    """Move bytes; return the places whose message has ended or reached its count. Those that ended send no more."""
    reached = np.zeros(len(active), np.bool_)
    for row, place in enumerate(active):
        moved = values[place, RATE] * seconds
        values[place, SENT] += moved
        values[place, TOTAL] += moved
        left = values[place, SIZE] - values[place, SENT]
        if left <= ROUNDING * values[place, SIZE]:
            values[place, TOTAL] += left
            values[place, SENT] = values[place, SIZE]
            sending[place] = False
            reached[row] = True
        elif values[place, SENT] >= values[place, UNTIL] - ROUNDING * values[place, SIZE]:
            values[place, UNTIL] = np.inf
            reached[row] = True
    return active[reached]
