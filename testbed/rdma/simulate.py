"""From event to event; compiled."""

from __future__ import annotations

from testbed.fluid.compiled import compiled_in_place
from testbed.rdma.agenda import take_first
from testbed.rdma.balancing import choose_next
from testbed.rdma.buffers import has_room, store
from testbed.rdma.links import enqueue, serve, take_from_wire, work
from testbed.rdma.losses import asked, drop, is_out_of_order, repeat, time_out
from testbed.rdma.pauses import hold, note_victim
from testbed.rdma.random_numbers import random_share
from testbed.rdma.receivers import notify, receive, take_answer
from testbed.rdma.senders import first_link, offer
from testbed.rdma.state import (
    ANSWER,
    ARRIVAL,
    ASKED,
    GO_BACK_N,
    KINDS,
    LINK_FREE,
    LOSS,
    NONE,
    NOTICE,
    PAUSE,
    TIMEOUT,
    WAKE,
    State,
    whole,
)
from testbed.rdma.transports.dispatch import on_notice

_PER_FLOW = 5
"""A wake-up, an answer, a notice, a request to go back and a timeout."""
_MOST_CHANGES = 8
"""Pauses and their ends that come of one event, at most."""


@compiled_in_place
def let_send(state: State, flow: int, now: float) -> None:
    """Something has happened that may let ``flow`` send."""
    if offer(state, flow, now):
        work(state, first_link(state, flow), now)


@compiled_in_place
def arrive(state: State, link: int, now: float) -> None:
    """A packet comes to the end of ``link``: a switch, or its receiver."""
    packet = take_from_wire(state, link)
    if state.links[link].loss > 0.0 and random_share(state) < state.links[link].loss:
        drop(state, link, packet, now)
        return
    state.packets[packet].hop += 1
    if state.links[link].target != NONE:
        choose_next(state, packet)
    following = state.paths[state.packets[packet].path, state.packets[packet].hop]
    if following != NONE:
        if state.links[link].target != NONE:
            if not has_room(state, link, following, packet):
                drop(state, following, packet, now)
                return
            store(state, link, following, packet, now)
            note_victim(state, link, following, packet)
        enqueue(state, following, packet, now)
        return
    flow = whole(state.packets[packet].flow)
    notify(state, packet, now)
    if state.rules.recovery == GO_BACK_N and is_out_of_order(state, packet, now):
        return
    receive(state, packet, now)
    for follower in (whole(state.flows[flow].follower), whole(state.flows[flow].other_follower)):
        if follower >= 0 and state.flows[follower].after == flow:
            let_send(state, follower, now)


@compiled_in_place
def happen(state: State, what: int, now: float) -> None:
    """Let one thing of the agenda happen."""
    kind, number = what % KINDS, what // KINDS
    if kind == ARRIVAL:
        arrive(state, number, now)
    elif kind == LINK_FREE:
        state.links[number].planned = False
        serve(state, number, now)
    elif kind == WAKE:
        state.flows[number].alarm = False
        let_send(state, number, now)
    elif kind == ANSWER:
        take_answer(state, number)
        let_send(state, number, now)
    elif kind == NOTICE:
        state.flows[number].notice = False
        on_notice(state, number, now)
    elif kind == ASKED:
        asked(state, number)
        let_send(state, number, now)
    elif kind == TIMEOUT:
        time_out(state, number, now)
        let_send(state, number, now)
    elif kind == LOSS:
        let_send(state, repeat(state, number), now)
    else:
        levels = state.queues.shape[1]
        link = number // levels
        if hold(state, link, number % levels, 1 if kind == PAUSE else -1, now):
            work(state, link, now)


@compiled_in_place
def others(state: State) -> int:
    """The most events other than pauses that can be planned at a time."""
    return 2 * len(state.links) + _PER_FLOW * len(state.flows) + len(state.packets)


@compiled_in_place
def simulate(state: State, now: float, until: float) -> float:
    """Let packets move from ``now`` to ``until``, or until a flow is in ``reached`` or room is short; return when.

    All but pauses have at most one event each on the agenda, so that only those can fill it.
    """
    counters, events = state.counters, state.agenda
    room = len(events) - others(state) - _MOST_CHANGES
    while counters.reached[0] == 0 and counters.short[0] == 0:
        if counters.changing[0] > room:
            counters.short[0] = 1
            break
        if counters.planned[0] == 0 or events[0].at_s > until:
            return until
        now = max(now, events[0].at_s)
        happen(state, take_first(state), now)
    return now


@compiled_in_place
def go_on(state: State, now: float) -> None:
    """There is room again: let every link send that could not."""
    for link in range(len(state.links)):
        if state.links[link].waiting != 0:
            work(state, link, now)
