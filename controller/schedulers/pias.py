"""PIAS (NSDI 2015): every message starts at the highest level and sinks as it sends; no size need be known.

The published thresholds fit web search. Here they follow from the messages of the running jobs:
each level carries the same share of their bytes. Counts restart with each message; otherwise a
connection that lives as long as its job would stay at the lowest level for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import isfinite
from typing import ClassVar

from controller.decision import ByteLevels, ClusterView, Decision, Event, Scheduler
from controller.schedulers.common.message_sizes import senders
from topologies.units import parse_size


def equal_share_thresholds(sizes: Iterable[float], levels: int) -> tuple[float, ...]:
    """Return the ``levels`` - 1 thresholds (bytes, ascending) between which messages of ``sizes`` send equal shares.

    Up to a threshold t a message of size s sends min(s, t). Empty without messages.
    """
    ordered = sorted(sizes)
    total = sum(ordered)
    thresholds: list[float] = []
    passed, before = 0.0, 0.0  # bytes sent by all messages up to `before` bytes each
    for index, size in enumerate(ordered):
        longer = len(ordered) - index
        stretch = longer * (size - before)
        while len(thresholds) < levels - 1 and passed + stretch >= (wanted := total * (len(thresholds) + 1) / levels):
            thresholds.append(before + (wanted - passed) / longer)
        passed, before = passed + stretch, size
    return tuple(thresholds)


class Pias(Scheduler):
    """Levels by the bytes that a message has sent.

    ``thresholds``: sizes in bytes (``1e6`` or ``1MB``), ascending, at most K - 1, in place of those
    computed from the running jobs (:func:`equal_share_thresholds`), in which each message of an iteration
    counts once. A message is what a flow sends in one phase.
    """

    name: ClassVar[str] = "pias"
    summary: ClassVar[str] = "levels by the bytes a message has sent, thresholds from the running jobs"
    decides: ClassVar[tuple[str, ...]] = ("levels",)
    source: ClassVar[str] = "Bai et al., NSDI 2015"

    def __init__(self, *, thresholds: Sequence[float | str] | None = None) -> None:
        self._thresholds = None if thresholds is None else _checked(thresholds)

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return the same thresholds for every job that sends; ``ValueError`` if there are more than K - 1."""
        sizes = senders(view.jobs.values())
        thresholds = self._thresholds
        if thresholds is None:
            thresholds = equal_share_thresholds((size for found in sizes.values() for size in found), view.level_count)
        elif len(thresholds) >= view.level_count:
            expected = f"at most {view.level_count - 1} for {view.level_count} levels"
            raise ValueError(f"option 'thresholds' of pias must hold {expected}, not {len(thresholds)}")
        return Decision(byte_levels=dict.fromkeys(sizes, ByteLevels("sent", thresholds)))


def _checked(thresholds: object) -> tuple[float, ...]:
    """The option as bytes; ``ValueError`` unless it is a list of ascending sizes above 0."""
    sizes: tuple[float, ...] = ()
    if isinstance(thresholds, list | tuple) and thresholds:
        try:
            sizes = tuple(_bytes(size) for size in thresholds)
        except ValueError:
            sizes = ()
    if not sizes or sizes[0] <= 0 or any(low >= high for low, high in pairwise(sizes)):
        raise ValueError(f"option 'thresholds' of pias must be a list of ascending sizes, not '{thresholds}'")
    return sizes


def _bytes(size: object) -> float:
    if isinstance(size, str):
        return parse_size(size)
    if isinstance(size, bool) or not isinstance(size, int | float) or not isfinite(size):
        raise ValueError(f"'{size}' is no size")
    return float(size)
