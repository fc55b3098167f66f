"""Fair shares between queues with weights and bounds, as YARN's Fair Scheduler computes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Final, TypeVar

_STEPS: Final = 25

NameT = TypeVar("NameT")
"""What queues are named by."""


@dataclass(frozen=True, slots=True)
class Share:
    """What a queue may claim: its ``weight`` beside the others, and bounds in GPUs."""

    weight: float = 1.0
    least: float = 0.0
    most: float = inf

    def at(self, ratio: float) -> float:
        """GPUs at ``ratio`` GPUs per weight."""
        return min(self.most, max(self.least, self.weight * ratio))


def fair_shares(total: int, queues: Mapping[NameT, Share]) -> dict[NameT, int]:
    """Return GPUs for each queue: of all ratios the one at which the shares add up to ``total``, in whole GPUs.

    The ratio is found by doubling, then :data:`_STEPS` bisections, and shares are truncated (YARN's ComputeFairShares).
    Queues whose bounds add up to less than ``total`` get those.
    """
    wanted = min(float(total), sum(queue.most for queue in queues.values()))
    if not queues or wanted <= 0:
        return dict.fromkeys(queues, 0)

    def used(ratio: float) -> int:
        return sum(int(queue.at(ratio)) for queue in queues.values())

    high = 1.0
    while used(high) < wanted and any(queue.weight > 0 for queue in queues.values()) and high < 1e12:
        high *= 2.0
    low = 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if used(middle) < wanted:
            low = middle
        else:
            high = middle
    return {name: int(queue.at(high)) for name, queue in queues.items()}
