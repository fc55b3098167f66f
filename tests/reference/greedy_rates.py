"""Sincronia's greedy rates (Agarwal et al., SIGCOMM 2018, section 3.2), which the examples of its paper use."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import TypeVar, cast

Coflow = TypeVar("Coflow", bound=Hashable)
Port = TypeVar("Port", bound=Hashable)
FlowId = TypeVar("FlowId", bound=Hashable)
Number = TypeVar("Number", float, Fraction)


def greedy_rates(
    order: Sequence[Coflow],
    flows: Mapping[Coflow, Mapping[FlowId, tuple[Port, Port]]],
    capacity: Mapping[Port, Number],
) -> dict[FlowId, Number]:
    """Return the rates of the order-preserving greedy schedule on a big switch (Sincronia section 3.2).

    ``flows``: coflow -> flow -> (ingress, egress), those with bytes left. Coflows are walked in
    ``order``, flows as listed: one whose ports are both free gets the rate of the slower, others 0.
    """
    taken: set[Port] = set()
    rates: dict[FlowId, Number] = {}
    for coflow in order:
        for flow, ports in flows.get(coflow, {}).items():
            free = taken.isdisjoint(ports)
            rates[flow] = min(capacity[port] for port in ports) if free else cast(Number, 0)
            if free:
                taken.update(ports)
    return rates
