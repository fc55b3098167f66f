"""Whether switches spread packets evenly over the cables of their groups, as they were told to. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Final

from topologies.network.load_balancing import LoadBalancing, SpreadCount

MAX_ERROR: Final = 0.01
"""Share of its due by which a cable may have more or fewer packets than the others, beside what chance explains."""
DEVIATIONS: Final = 5.0
"""Standard deviations that chance may explain where packets are spread at random."""


def spread_error(counts: Iterable[SpreadCount]) -> float:
    """The largest share of its due by which a cable had more or fewer packets; 0 without any."""
    return max((abs(packets / each.due - 1.0) for each in counts if each.due for packets in each.packets), default=0.0)


def uneven(counts: Iterable[SpreadCount], kind: LoadBalancing) -> list[str]:
    """Return one line for each cable that got more or fewer packets than ``kind`` of spreading explains.

    In turn the difference is a packet. At random the number of a cable among n is binomial with a share of 1/n.
    Flowlets are as long as their senders make them: nothing is said about them.
    """
    if kind == "flowlet":
        return []
    lines = []
    for each in counts:
        chance = sqrt(each.due * (1.0 - 1.0 / len(each.packets)))
        allowed = MAX_ERROR * each.due + (1.0 if kind == "spray-in-turn" else DEVIATIONS * chance)
        for interface, packets in zip(each.interfaces, each.packets, strict=True):
            if abs(packets - each.due) > allowed:
                lines.append(
                    f"switch {each.switch} sent {packets} packets by {interface}, expected {each.due:.0f}, "
                    f"as many as by each of {len(each.packets)}"
                )
    return lines
