"""pFabric (SIGCOMM 2013) with strict priorities: the message with the fewest bytes left goes first.

pFabric gives each packet the remaining size of its message and drops the largest; here K levels
stand for the sizes, on a logarithmic scale, and nothing is dropped by size.
"""

from __future__ import annotations

from typing import ClassVar

from controller.decision import ByteLevels, ClusterView, Decision, Event, Scheduler
from controller.schedulers.common.message_sizes import senders

RATIO = 2.0
"""From a threshold to the next: with 8 levels the first is 1/128 of the largest message."""


def log_thresholds(largest: float, levels: int, ratio: float = RATIO) -> tuple[float, ...]:
    """Return the ``levels`` - 1 thresholds below ``largest`` bytes, each ``ratio`` times the one before, ascending."""
    return tuple(largest / ratio ** (levels - 1 - index) for index in range(levels - 1))


class PFabric(Scheduler):
    """Levels by the bytes that a message has left.

    The thresholds depend on the largest message of the running jobs: the lowest level holds messages with
    more than 1 / ``ratio`` of it left, the next more than 1 / ``ratio`` ** 2, and so on. A message
    is what a flow sends in one phase; the count restarts with the next one.
    """

    name: ClassVar[str] = "pfabric"
    summary: ClassVar[str] = "levels by the bytes a message has left, on a log scale"
    decides: ClassVar[tuple[str, ...]] = ("levels",)
    source: ClassVar[str] = "Alizadeh et al., SIGCOMM 2013"

    def __init__(self, *, ratio: float = RATIO) -> None:
        if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 1 < ratio <= 1000:
            raise ValueError(f"option 'ratio' of pfabric must be a number above 1, at most 1000, not '{ratio}'")
        self._ratio = float(ratio)

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return the same thresholds for every job that sends."""
        sizes = senders(view.jobs.values())
        largest = max((max(found) for found in sizes.values()), default=0.0)
        levels = ByteLevels("left", log_thresholds(largest, view.level_count, self._ratio))
        return Decision(byte_levels=dict.fromkeys(sizes, levels))
