"""From what a rehearsal saw to what the machine carries. Pure.

A rehearsal sends a run's own messages without the pauses between them, at rates that rise. Each step gives what was
sent and the share of the CPU that the run itself took for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from testbed.experiment.capacity import MTUS, Capacity
from topologies.datapath import Datapath
from topologies.shaping import segment_size

ALLOWED_BUSY: Final = 0.52
"""Share of the CPU that the run itself may take in its busiest second; one that leaves less than 35 % is not ``ok``."""
CLOSE: Final = 0.07
"""A step that comes so close to what is allowed is the last one."""
MOST_STEPS: Final = 5
FASTEST_RISE: Final = 4.0
"""A step is at most so many times faster than the one before, or slower."""
MAX_OTHERS: Final = 0.15
"""A step in which others took more of the CPU than this counts only if there is no other."""
MOST_BEYOND: Final = 1.5
"""A capacity is at most so many times the largest load that was tried."""


@dataclass(frozen=True, slots=True)
class Step:
    """A second at one rate: links at 1 / ``bandwidth``; packet hops as in :class:`Capacity`; shares of all CPUs."""

    bandwidth: float
    mtu: int
    packet_hops_per_s: float
    busy: float
    others: float


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """All steps, the first of them with nothing sent."""

    datapath: Datapath
    steps: tuple[Step, ...]

    @property
    def capacity(self) -> Capacity:
        """What the machine carries while the run takes ``ALLOWED_BUSY`` of the CPU; ``ValueError`` if nothing was sent.

        By the cost of a packet in the step of its size whose load came nearest to that, or of the nearest size tried: a
        packet costs more where more of them wait.
        """
        base, costs = self._base, self._costs
        hops = {}
        for mtu, more in MTUS.items():
            tried = min(costs, key=lambda other: abs(other - mtu))
            cost, most = costs[tried]
            share = MTUS[tried] / more
            hops[mtu] = min((ALLOWED_BUSY - base) / (cost * share), MOST_BEYOND * most / share)
        return Capacity(self.datapath, hops)

    @property
    def _base(self) -> float:
        base = self.steps[0].busy
        if base >= ALLOWED_BUSY:
            raise ValueError(f"{base:.0%} of the CPU are busy before anything is sent")
        return base

    @property
    def _costs(self) -> dict[int, tuple[float, float]]:
        """Packet size -> share of the CPU for a packet hop per second, and the most of them tried."""
        sending = [step for step in self._quiet if step.packet_hops_per_s > 0]
        if not sending:
            raise ValueError("nothing was sent")
        nearest = {step.mtu: step for step in sorted(sending, key=lambda step: -abs(step.busy - ALLOWED_BUSY))}
        most = {step.mtu: step.packet_hops_per_s for step in sorted(sending, key=lambda step: step.packet_hops_per_s)}
        return {
            mtu: (max(step.busy - self._base, 1e-3) / step.packet_hops_per_s, most[mtu])
            for mtu, step in nearest.items()
        }

    @property
    def disturbed(self) -> str:
        """One line if others took much of the CPU in a step; empty otherwise."""
        loudest = max(step.others for step in self.steps)
        if loudest <= MAX_OTHERS:
            return ""
        return f"other processes took up to {loudest:.0%} of the CPU while the scale was measured"

    @property
    def _quiet(self) -> Sequence[Step]:
        quiet = [step for step in self.steps if step.others <= MAX_OTHERS]
        return quiet if any(step.packet_hops_per_s > 0 for step in quiet) else self.steps

    def document(self) -> dict[str, Any]:
        """The evidence as JSON."""
        steps = [{key: round(value, 4) for key, value in asdict(step).items()} for step in self.steps]
        hops = {str(mtu): round(rate) for mtu, rate in self.capacity.packet_hops_per_s.items()}
        return {"allowed_busy": ALLOWED_BUSY, "packet_hops_per_s": hops, "steps": steps}


def next_step(steps: Sequence[Step], fastest: float) -> tuple[float, int] | None:
    """The scale of rates, never below ``fastest``, and the packet size to try next; None if ``steps`` are enough.

    Rates rise, or fall where they were too much. Once links cannot be faster, packets become smaller.
    """
    idle, last = steps[0], steps[-1]
    if abs(last.busy - ALLOWED_BUSY) <= CLOSE or len(steps) > MOST_STEPS:
        return None
    rise = (ALLOWED_BUSY - idle.busy) / max(last.busy - idle.busy, 1e-9)
    rise = min(FASTEST_RISE, max(1 / FASTEST_RISE, rise))
    if last.bandwidth > fastest or (rise < 1 and last.mtu == max(step.mtu for step in steps)):
        return max(fastest, last.bandwidth / rise), last.mtu
    others = [mtu for mtu in MTUS if (mtu < last.mtu) == (rise > 1) and _more_work(last.mtu, mtu) <= rise]
    untried = [mtu for mtu in others if mtu not in {step.mtu for step in steps}]
    return (last.bandwidth, min(untried)) if untried else None


def _more_work(mtu: int, other: int) -> float:
    """How much more the same bytes cost in packets of the ``other`` size, about."""
    return segment_size(mtu) / segment_size(other) * MTUS[mtu] / MTUS[other]
