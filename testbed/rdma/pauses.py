"""Pauses of a level of a link (PFC, IEEE 802.1Qbb): how they begin and end, whom they hold, and who is not to blame.

Every queue has a clock of pauses: the seconds that it has been paused so far. Compiled.
"""

from __future__ import annotations

from testbed.fluid.compiled import compiled_in_place
from testbed.rdma.agenda import plan
from testbed.rdma.state import State, whole


@compiled_in_place
def tell(state: State, link: int, level: int, kind: int, now: float) -> None:
    """Ask the other end of ``link`` to pause ``level``, or to go on: it hears of that after the link's delay."""
    state.counters.changing[0] += 1
    plan(state, now + state.links[link].delay, kind, link * state.queues.shape[1] + level)


@compiled_in_place
def hold(state: State, link: int, level: int, change: int, now: float) -> bool:
    """A pause of ``level`` begins at ``link``, or ends; return whether it may send again.

    The pauses and ends of one moment come in any order.
    """
    state.counters.changing[0] -= 1
    queue = state.queues[link, level]
    before = queue.paused
    queue.paused += change
    if queue.paused > 0:
        if before <= 0:
            queue.pause_from_s = now
        state.links[link].paused |= 1 << level
        return False
    if before > 0:
        queue.paused_s += now - queue.pause_from_s
    state.links[link].paused &= ~(1 << level)
    return True


@compiled_in_place
def paused_s(state: State, link: int, level: int, now: float) -> float:
    """Seconds that ``level`` of ``link`` has been paused until now."""
    queue = state.queues[link, level]
    if queue.paused > 0:
        return float(queue.paused_s + now - queue.pause_from_s)
    return float(queue.paused_s)


@compiled_in_place
def note_held(state: State, link: int, packet: int) -> None:
    """``packet`` leaves by ``link`` after a pause: its flow was held for as long as none before it has said."""
    fields = state.packets[packet]
    record, now = state.flows[fields.flow], state.queues[link, fields.level].paused_s
    since = max(fields.paused_s, record.held_until_s) if record.held_link == link else fields.paused_s
    record.held_link, record.held_until_s = link, now
    fields.held_s = max(0.0, now - since)
    record.held_s += fields.held_s


@compiled_in_place
def is_long(state: State, link: int, level: int) -> bool:
    """Whether two full packets or more wait at ``level`` of ``link``."""
    return bool(state.queues[link, level].queued >= 2 * (state.rules.payload + state.rules.header))


@compiled_in_place
def note_victim(state: State, link: int, following: int, packet: int) -> None:
    """``packet`` has come over ``link`` and is to leave by ``following``.

    If a pause has held it although no queue has stood where it goes since that was asked for, others were to blame.
    """
    fields = state.packets[packet]
    if fields.held_s > 0.0:
        level = whole(fields.level)
        asked_s = state.queues[link, level].pause_from_s - state.links[link].delay
        if not is_long(state, following, level) and state.queues[following, level].long_s < asked_s:
            state.flows[fields.flow].victim_s += fields.held_s
        fields.held_s = 0.0
