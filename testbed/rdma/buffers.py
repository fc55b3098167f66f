"""Shared buffers of switches with dynamic thresholds, pauses per level or drops, and marks; compiled.

A queue of what came in over one link may grow to a share of what is free (Choudhury and Hahne, IEEE/ACM Transactions on
Networking 6(2), 1998). Beyond, the other end of the link is asked to pause that level (IEEE 802.1Qbb), until the queue
is a little below.
"""

from __future__ import annotations

from testbed.fluid.compiled import compiled_in_place
from testbed.rdma.agenda import plan
from testbed.rdma.state import NONE, PAUSE, PAUSES, RESUME, State

_FACTOR = 48271
_MODULUS = 2147483647
"""Of the generator of Park and Miller (Communications of the ACM 36(7), 1993): whole numbers of 31 bits."""


@compiled_in_place
def random_share(state: State) -> float:
    """The next random number above 0 and below 1."""
    drawn = state.counters.random[0] * _FACTOR % _MODULUS
    state.counters.random[0] = drawn
    return float(drawn / _MODULUS)


@compiled_in_place
def bytes_on_wire(state: State, packet: int) -> float:
    """Bytes that ``packet`` takes on a link."""
    return float(state.packets[packet].payload + state.rules.header)


@compiled_in_place
def store(state: State, link: int, packet: int, now: float) -> None:
    """``packet`` has come in over ``link``: it takes room in the switch, which may ask for a pause."""
    switch, level = state.links[link].target, state.packets[packet].level
    size = bytes_on_wire(state, packet)
    state.switches[switch].used += size
    state.switches[switch].most = max(state.switches[switch].most, state.switches[switch].used)
    queue = state.queues[link, level]
    queue.held += size
    most = state.rules.alpha * (state.rules.buffer - state.switches[switch].used)
    if state.rules.when_full == PAUSES and queue.held > most and not queue.pausing:
        queue.pausing = True
        state.counters.pauses[0] += 1
        tell(state, link, level, PAUSE, now)


@compiled_in_place
def tell(state: State, link: int, level: int, kind: int, now: float) -> None:
    """Ask the other end of ``link`` to pause ``level``, or to go on: it hears of that after the link's delay."""
    state.counters.changing[0] += 1
    plan(state, now + state.links[link].delay, kind, link * state.queues.shape[1] + level)


@compiled_in_place
def has_room(state: State, switch: int, link: int, packet: int) -> bool:
    """Whether ``switch`` takes ``packet``, which is to leave by ``link``; where there are pauses it always does."""
    if state.rules.when_full == PAUSES:
        return True
    free = state.rules.buffer - state.switches[switch].used
    waits = state.queues[link, state.packets[packet].level].queued
    return bool(bytes_on_wire(state, packet) <= free and waits <= state.rules.alpha * free)


@compiled_in_place
def release(state: State, link: int, packet: int, now: float) -> None:
    """``packet``, which came in over ``link``, leaves the switch."""
    switch, level = state.links[link].target, state.packets[packet].level
    size = bytes_on_wire(state, packet)
    state.switches[switch].used -= size
    queue = state.queues[link, level]
    queue.held -= size
    if queue.pausing:
        most = state.rules.alpha * (state.rules.buffer - state.switches[switch].used)
        if queue.held < size or queue.held <= most - state.rules.resume:
            queue.pausing = False
            tell(state, link, level, RESUME, now)


@compiled_in_place
def mark(state: State, link: int, packet: int) -> None:
    """Mark ``packet``, which leaves by ``link``, if the queue behind it is long (RED, RFC 3168)."""
    record = state.links[link]
    if record.mark_from == 0.0 or record.source == NONE:
        return
    queued = state.queues[link, state.packets[packet].level].queued
    if queued <= record.mark_from or state.packets[packet].marked:
        return
    if queued > record.mark_to or random_share(state) * (record.mark_to - record.mark_from) < state.rules.marked * (
        queued - record.mark_from
    ):
        state.packets[packet].marked = True
        state.counters.marks[0] += 1
