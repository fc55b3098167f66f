"""Marks that follow a count of a message's bytes."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ByteMarks:
    """``IP_TOS`` by a count of a message's bytes, ``left`` or sent: one more mark than ``thresholds``."""

    left: bool
    thresholds: tuple[int, ...]
    marks: tuple[int, ...]

    def at(self, sent: int, size: int) -> tuple[int, int]:
        """Return the mark of the byte at offset ``sent`` of ``size``, and the offset at which it changes."""
        if self.left:
            level = bisect_left(self.thresholds, size - sent)
            return self.marks[level], size - self.thresholds[level - 1] if level else size
        level = bisect_left(self.thresholds, sent + 1)
        return self.marks[level], min(size, self.thresholds[level]) if level < len(self.thresholds) else size
