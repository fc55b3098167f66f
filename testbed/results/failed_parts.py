"""What failed when in a run, and which jobs it stopped, from the run's record. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from testbed.results.record import RunRecord


@dataclass(frozen=True, slots=True)
class Span:
    """From ``from_s`` to ``until_s``, seconds of the run: a part that did not work, or a job that stood still.

    A job may have ``restarted``, and ``repeated`` so many iterations.
    """

    name: str
    from_s: float
    until_s: float
    restarted: bool = False
    repeated: int = 0

    @property
    def length_s(self) -> float:
        """How long it was."""
        return self.until_s - self.from_s

    def shared_s(self, other: Span) -> float:
        """How long both were at the same time; a tenth of a second early still is the same time."""
        return max(0.0, min(self.until_s, other.until_s) - max(self.from_s - 0.1, other.from_s))


def failed_parts(record: RunRecord) -> list[Span]:
    """Parts that failed, in order of time; those that did not come back are down until the end."""
    rows = _rows(record, "failures")
    return [Span(row["part"], row["failed_s"], _until(row["restored_s"], record)) for row in rows]


def stopped_jobs(record: RunRecord) -> list[Span]:
    """Jobs that failures stopped, in order of time."""
    rows = _rows(record, "outages")
    return [
        Span(
            row["job"],
            row["from_s"],
            max(row["from_s"], _until(row["until_s"], record)),
            row["ended_s"] is not None and row["until_s"] is not None,
            row["repeated"],
        )
        for row in rows
    ]


def _until(value: float | None, record: RunRecord) -> float:
    return record.duration_s if value is None else min(value, record.duration_s)


def _rows(record: RunRecord, key: str) -> Sequence[Mapping[str, Any]]:
    found = record.environment.get(key)
    return found if isinstance(found, Sequence) and not isinstance(found, str) else ()
