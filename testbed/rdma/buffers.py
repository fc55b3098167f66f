"""Buffers of switches with dynamic or fixed thresholds, which ask for pauses or have no room, and marks; compiled.

A queue of what came in over one link may grow to a share of what is free (Choudhury and Hahne, IEEE/ACM Transactions on
Networking 6(2), 1998), or to a fixed number of bytes. Beyond, the other end of the link is asked to pause that level
(IEEE 802.1Qbb), until the queue is a little below. What is under way by then goes to the headroom of that link's level.
"""

from __future__ import annotations

from testbed.fluid.compiled import compiled_in_place
from testbed.rdma.pauses import tell
from testbed.rdma.random_numbers import random_share
from testbed.rdma.state import NONE, PAUSE, PAUSES, RESUME, Records, State, whole


@compiled_in_place
def bytes_on_wire(state: State, packet: int) -> float:
    """Bytes that ``packet`` takes on a link."""
    return float(state.packets[packet].payload + state.rules.header)


@compiled_in_place
def most_held(state: State, pool: Records) -> float:
    """Bytes that a queue may hold in the memory ``pool`` before a pause is asked for, or packets are dropped."""
    if state.rules.xoff > 0.0:
        return float(state.rules.xoff)
    return float(state.rules.alpha * (pool.capacity - pool.used))


@compiled_in_place
def pool_of(state: State, link: int, following: int) -> int:
    """The memory that keeps what has come over ``link`` and is to leave by ``following``.

    Pauses are about what comes in, drops about what is to leave; it makes a difference where each port has its own.
    """
    if state.rules.when_full == PAUSES:
        return int(state.links[link].pool_behind)
    return int(state.links[following].pool_before)


@compiled_in_place
def store(state: State, link: int, following: int, packet: int, now: float) -> None:
    """``packet`` takes room in the switch, which may ask for a pause. What comes after that has room of its own."""
    pool = state.pools[pool_of(state, link, following)]
    level, size = whole(state.packets[packet].level), bytes_on_wire(state, packet)
    queue = state.queues[link, level]
    queue.held += size
    fits = pool.used + size <= pool.capacity and not queue.pausing
    if fits:
        pool.used += size
        pool.most = max(pool.most, pool.used)
    else:
        queue.headroom += size
        queue.most_headroom = max(queue.most_headroom, queue.headroom)
    if state.rules.when_full == PAUSES and not queue.pausing and (not fits or queue.held > most_held(state, pool)):
        queue.pausing = True
        state.counters.pauses[0] += 1
        tell(state, link, level, PAUSE, now)


@compiled_in_place
def has_room(state: State, link: int, following: int, packet: int) -> bool:
    """Whether a switch takes ``packet``, which has come over ``link`` and is to leave by ``following``.

    Where there are pauses it always does.
    """
    if state.rules.when_full == PAUSES:
        return True
    pool = state.pools[pool_of(state, link, following)]
    waits = state.queues[following, state.packets[packet].level].queued
    return bool(bytes_on_wire(state, packet) <= pool.capacity - pool.used and waits <= most_held(state, pool))


@compiled_in_place
def release(state: State, link: int, following: int, packet: int, now: float) -> None:
    """``packet``, which came over ``link``, leaves by ``following``; headroom is free again first."""
    pool = state.pools[pool_of(state, link, following)]
    level, size = whole(state.packets[packet].level), bytes_on_wire(state, packet)
    queue = state.queues[link, level]
    spare = min(queue.headroom, size)
    queue.held -= size
    queue.headroom -= spare
    pool.used -= size - spare
    may_go_on = queue.pausing and queue.headroom < 1.0
    if may_go_on and (queue.held < size or queue.held <= most_held(state, pool) - state.rules.resume):
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
