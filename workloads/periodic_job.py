"""A job as what repeats: compute, communication beside or after it, and the links that its bytes load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Generic, TypeVar

SLACK_S: Final = 1e-9
"""Seconds below which a remainder is rounding and counts as done."""

LinkT = TypeVar("LinkT")


@dataclass(frozen=True)
class PeriodicJob(Generic[LinkT]):
    """A job on its links; times in seconds per iteration.

    ``lead_s`` is the compute that must be done before communication may start: all of it in the serial form, less
    where they overlap. ``loads``: link -> seconds that the link needs for the job's bytes (bytes * 8 / capacity).
    ``gpus`` weighs the job in utilisation. ``offset_s`` is how far into an iteration, run alone, the job is at
    time 0. ``level``: 0 is served first. ``pause_s``: what the job waits before each iteration to keep a time shift.
    ``ValueError`` for what cannot be repeated for ever.
    """

    compute_s: float
    lead_s: float
    loads: Mapping[LinkT, float] = field(default_factory=dict, hash=False)
    gpus: float = 1.0
    offset_s: float = 0.0
    level: int = 0
    pause_s: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.lead_s <= self.compute_s:
            raise ValueError("a periodic job needs 0 <= lead_s <= compute_s")
        if self.gpus <= 0 or min(self.loads.values(), default=0.0) < 0:
            raise ValueError("a periodic job needs gpus > 0 and no load below 0")
        if self.period_s <= 0 or not 0 <= self.offset_s < self.period_s:
            raise ValueError("a periodic job needs an iteration longer than 0 s, and 0 <= offset_s < that")

    @cached_property
    def communication_s(self) -> float:
        """Seconds of communication of the job alone: t_j, those of its most loaded link."""
        return max(self.loads.values(), default=0.0)

    @cached_property
    def period_s(self) -> float:
        """Seconds of an iteration of the job alone, with its pause."""
        return self.pause_s + max(self.compute_s, self.lead_s + self.communication_s)


def on_one_link(compute_s: float, communication_s: float, lead_s: float) -> PeriodicJob[str]:
    """Return a job that sends over one link for ``communication_s`` per iteration; ``ValueError`` if it never does."""
    if communication_s <= 0:
        raise ValueError("a job on a link needs communication_s > 0")
    return PeriodicJob(compute_s, lead_s, {"link": communication_s})
