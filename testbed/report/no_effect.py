"""Schedulers of a run that did the same to the last digit, and why. Pure.

A difference of nothing looks like a result; more often a knob is not connected (asked of SimAI in its issue 145).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from controller.decision import Decision
from testbed.results.record import RunRecord


def without_effect(summary: Mapping[str, Any], records: Sequence[RunRecord], ignored: str) -> list[str]:
    """A line for everything that made no difference to a run; ``ignored``: what its engine has not, if anything."""
    return [*filter(None, [ignored]), *same_schedulers(records, summary.get("nothing_to_schedule", ""))]


def same_schedulers(records: Sequence[RunRecord], nothing_to_schedule: str = "") -> list[str]:
    """Return a line for each scheduler whose jobs had the very iterations that they had under one before it.

    ``nothing_to_schedule``: why no scheduler can make a difference, if that is known.
    """
    lines = []
    times = [[(row.job, row.gpu, row.iteration, row.start_s, row.end_s) for row in each.iterations] for each in records]
    for place, record in enumerate(records):
        alike = next((each for each in range(place) if times[each] == times[place] != []), None)
        if alike is not None:
            why = nothing_to_schedule.partition(": every scheduler")[0] or _why(records[alike], record)
            pair = f"{record.scheduler} and {records[alike].scheduler}"
            lines.append(f"{pair} have the same iterations to the last digit: {why}")
    return lines


def _why(one: RunRecord, other: RunRecord) -> str:
    first, second = _in_force(one), _in_force(other)
    if first == second:
        return "the same decisions"
    differ = [name for name in first if first[name] != second[name]]
    return f"other {' and '.join(differ)}, but no iteration was shorter or longer for them"


def _in_force(record: RunRecord) -> Mapping[str, Any]:
    """What was decided, in order; not when, which depends on how long a scheduler thinks, and not why."""
    names = [each.name for each in fields(Decision) if each.name not in ("notes", "ports")]
    return {name.replace("_", " "): [getattr(row.decision, name) for row in record.decisions] for name in names}
