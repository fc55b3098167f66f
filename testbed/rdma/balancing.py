"""Which of its candidate paths a packet takes; compiled."""

from __future__ import annotations

from typing import Final

from testbed.fluid.compiled import compiled_in_place
from testbed.rdma.buffers import random_share
from testbed.rdma.state import State

HASH, SPRAY, TURN = range(3)
BALANCING: Final = {"hash": HASH, "spray": SPRAY, "spray-in-turn": TURN}


@compiled_in_place
def choose_path(state: State, flow: int) -> int:
    """The path of the next packet of ``flow``."""
    record = state.flows[flow]
    if state.rules.balancing == HASH or record.paths == 1:
        return int(record.path)
    if state.rules.balancing == TURN:
        record.turn = (record.turn + 1) % record.paths
        return int(record.path + record.turn)
    return int(record.path + int(random_share(state) * record.paths))
