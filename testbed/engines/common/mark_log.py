"""For each flow, the marks that were in force over time. Pure.

A packet may wait in queues, and a mark decided now is on the wire a little later: a packet is right if
it carries a mark that was in force for its flow at some time from ``WAIT_S`` before it was seen.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import repeat
from math import inf
from typing import Final

WAIT_S: Final = 3.0
"""Seconds, machine's clock, that a packet of a low level may wait for higher ones."""


class MarkLog:
    """For each flow, the marks in force over time; what is set at the same time by several is a choice of marks."""

    def __init__(self) -> None:
        self._times: dict[str, list[float]] = {}
        self._marks: dict[str, list[frozenset[int]]] = {}

    def set(self, flow: str, time_s: float, marks: Iterable[int]) -> None:
        """From ``time_s`` on ``flow`` carries one of ``marks``; times of a flow do not go back."""
        known, wanted = self._marks.setdefault(flow, []), frozenset(marks)
        if not known or known[-1] != wanted:
            self._times.setdefault(flow, []).append(time_s)
            known.append(wanted)

    def changes(self) -> Iterable[tuple[str, float, frozenset[int], float]]:
        """(flow, when, new marks, until) of every change of a flow's marks; not its first ones."""
        for flow, times in self._times.items():
            yield from zip(repeat(flow), times[1:], self._marks[flow][1:], [*times[2:], inf], strict=False)

    def allowed(self, flow: str, time_s: float) -> frozenset[int]:
        """Every mark in force for ``flow`` in the last :data:`WAIT_S` before ``time_s``."""
        times = self._times.get(flow, [])
        first = max(0, bisect_right(times, time_s - WAIT_S) - 1)
        last = bisect_right(times, time_s)
        return frozenset().union(*self._marks.get(flow, [])[first:last])
