"""MLTCP (HotNets 2024): congestion control that makes jobs which share links interleave, without a controller.

A flow is the more aggressive the more of its iteration it has sent: its window grows by F(r) times what it would,
F(r) = slope r + intercept, r = min(1, bytes sent in this iteration / bytes of an iteration). A job that is ahead gets
more, ends earlier and begins its next iteration earlier, until the bursts of two jobs no longer overlap. As a fluid the
flows share a link in proportion to F(r).
"""

from __future__ import annotations

from math import isfinite
from typing import ClassVar, Final

from controller.decision import ByteWeights, ClusterView, Decision, Event, Scheduler
from controller.ecmp_hash import ecmp_paths

PARTS: Final = 64
"""Parts of an iteration's bytes for each of which F(r) is taken in the middle."""


def aggressiveness(slope: float, intercept: float, parts: int = PARTS) -> ByteWeights:
    """Return F(r) in ``parts`` steps."""
    return ByteWeights(tuple(slope * (part + 0.5) / parts + intercept for part in range(parts)))


def next_shift(shift_s: float, communication_s: float, slope: float, intercept: float) -> float:
    """Return by how many seconds one of two equal jobs is ahead after an iteration in which it began ``shift_s`` ahead.

    ``communication_s``: an iteration's communication alone. The leader sends alone for ``shift_s``; while both send,
    their progress grows in proportion to F(r); the other sends its rest alone.
    """
    ahead, alone = shift_s, communication_s
    return ahead + slope * ahead * (alone - ahead) / (alone * intercept + ahead * slope)


class Mltcp(Scheduler):
    """Hashed paths, one level, shares of links by F(r). ``slope``, ``intercept``: of F(r).

    In an emulation a flow's window stands for its share: in steps of whole packets, so F(r) is coarse there.
    """

    name: ClassVar[str] = "mltcp"
    summary: ClassVar[str] = (
        "flows get more of a link the more of their iteration they have sent, so that jobs interleave"
    )
    decides: ClassVar[tuple[str, ...]] = ("paths", "weights")
    source: ClassVar[str] = "Rajasekaran et al., HotNets 2024"

    def __init__(self, *, slope: float = 1.75, intercept: float = 0.25) -> None:
        if not (_is_number(slope) and slope >= 0):
            raise ValueError(f"option 'slope' of mltcp must be a number of at least 0, not '{slope}'")
        if not (_is_number(intercept) and intercept > 0):
            raise ValueError(f"option 'intercept' of mltcp must be a number above 0, not '{intercept}'")
        self._weights = aggressiveness(slope, intercept)

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return the hashed path of each flow, and F(r) for each job that sends."""
        paths = ecmp_paths(view.fabric, view.flows, view.seed)
        sending = [job.name for job in view.jobs.values() if any(flow.bytes > 0 for flow in job.flows)]
        return Decision(paths=paths, weights=dict.fromkeys(sending, self._weights))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
