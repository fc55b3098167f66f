"""Which of its candidate paths a packet takes; compiled."""

from __future__ import annotations

from typing import Final

from testbed.fluid.compiled import compiled_in_place
from testbed.rdma.random_numbers import random_share
from testbed.rdma.state import State, whole

HASH, SPRAY, TURN, FLOWLET, ADAPTIVE = range(5)
BALANCING: Final = {"hash": HASH, "spray": SPRAY, "spray-in-turn": TURN, "flowlet": FLOWLET, "adaptive": ADAPTIVE}


@compiled_in_place
def choose_path(state: State, flow: int, now: float) -> int:
    """The path of the next packet of ``flow`` as it leaves its host.

    Flowlets (Vanini et al., NSDI 2017): a new path at random once the flow was silent for a while.
    """
    record, balancing = state.flows[flow], state.rules.balancing
    if balancing == HASH or record.paths == 1:
        return int(record.path)
    if balancing == TURN:
        record.turn = (record.turn + 1) % record.paths
    elif balancing != FLOWLET or now - record.left_s > state.rules.flowlet_s:
        record.turn = int(random_share(state) * record.paths)
    record.left_s = now
    return int(record.path + record.turn)


@compiled_in_place
def choose_next(state: State, packet: int) -> None:
    """Let the switch that ``packet`` has come to choose among the paths that go on from here: the shortest queue."""
    fields = state.packets[packet]
    record = state.flows[fields.flow]
    if state.rules.balancing != ADAPTIVE or record.paths == 1:
        return
    first = int(random_share(state) * record.paths)  # ties are drawn
    best, least = fields.path, -1.0
    for number in range(record.paths):
        path = record.path + (first + number) % record.paths
        if goes_on_from(state, path, whole(fields.path), whole(fields.hop)):
            waits = waiting_before(state, state.paths[path, fields.hop], whole(fields.level))
            if least < 0.0 or waits < least:
                best, least = path, waits
    fields.path = best


@compiled_in_place
def goes_on_from(state: State, path: int, other: int, hop: int) -> bool:
    """Whether two paths are the same up to ``hop``."""
    place = 0
    while place < hop and state.paths[path, place] == state.paths[other, place]:
        place += 1
    return place == hop


@compiled_in_place
def waiting_before(state: State, link: int, level: int) -> float:
    """Bytes that wait at ``link`` and leave before a packet of ``level`` that comes now."""
    total = 0.0
    for higher in range(level + 1):
        total += state.queues[link, higher].queued
    return total
