"""Random numbers of a simulation, which begin with the seed of its experiment; compiled."""

from __future__ import annotations

from testbed.fluid.compiled import compiled_in_place
from testbed.rdma.state import State

_FACTOR = 48271
_MODULUS = 2147483647
"""Of the generator of Park and Miller (Communications of the ACM 36(7), 1993): whole numbers of 31 bits."""


@compiled_in_place
def random_share(state: State) -> float:
    """The next random number above 0 and below 1."""
    drawn = state.counters.random[0] * _FACTOR % _MODULUS
    state.counters.random[0] = drawn
    return float(drawn / _MODULUS)
