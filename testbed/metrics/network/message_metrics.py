"""How long messages took, and how many times as long as in an empty network: by job and by size. Pure.

The slowdown of a message is its flow completion time divided by what it takes with nothing else on its path. Messages
count that lie in the window of their job, in iterations that nothing disturbed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from testbed.results.record import MessageRow, RunRecord

MOST_GROUPS: Final = 8
"""Groups of sizes at most: one for each size, or as many messages in each."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Spread:
    """The median, the 95th and the 99th percentile."""

    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class SizeGroup:
    """Messages of ``from_bytes`` to ``to_bytes``."""

    from_bytes: float
    to_bytes: float
    count: int
    completion_s: Spread
    slowdown: Spread


@dataclass(frozen=True, slots=True)
class MessageMetrics:
    """Of a job, or of all: how many messages, their flow completion times and slowdowns; the same ``by_size``."""

    count: int
    completion_s: Spread
    slowdown: Spread
    by_size: tuple[SizeGroup, ...]


def messages_by_job(record: RunRecord) -> dict[str, list[MessageRow]]:
    """Job -> its messages that count."""
    disturbed = {(row.job, row.iteration) for row in record.iterations if row.disturbed}
    found: dict[str, list[MessageRow]] = defaultdict(list)
    for row in record.messages:
        window = record.windows.get(row.job)
        inside = window is not None and window.start_s <= row.start_s and row.end_s <= window.end_s
        if inside and (row.job, row.iteration) not in disturbed:
            found[row.job].append(row)
    return found


def message_metrics(by_job: Mapping[str, Sequence[MessageRow]], jobs: Iterable[str]) -> MessageMetrics | None:
    """The numbers of ``jobs`` together; None if they have no messages."""
    rows = [row for job in jobs for row in by_job.get(job, ())]
    if not rows:
        return None
    sizes, completion, slowdown = (
        np.array([getattr(row, name) for row in rows]) for name in ("bytes", "completion_s", "slowdown")
    )
    groups = _groups(sizes)
    return MessageMetrics(
        count=len(rows),
        completion_s=_spread(completion),
        slowdown=_spread(slowdown),
        by_size=tuple(
            SizeGroup(
                from_bytes=float(sizes[group].min()),
                to_bytes=float(sizes[group].max()),
                count=len(group),
                completion_s=_spread(completion[group]),
                slowdown=_spread(slowdown[group]),
            )
            for group in groups
        ),
    )


def _spread(values: Floats) -> Spread:
    p50, p95, p99 = (float(value) for value in np.percentile(values, [50, 95, 99]))
    return Spread(p50, p95, p99)


def _groups(sizes: Floats) -> list[NDArray[np.int64]]:
    """The places of each group, small sizes first; messages of one size are in one group."""
    distinct, places = np.unique(sizes, return_inverse=True)
    group_of = np.arange(len(distinct))
    if len(distinct) > MOST_GROUPS:
        before = np.cumsum(np.bincount(places)) - np.bincount(places)  # messages that are smaller than each size
        group_of = before * MOST_GROUPS // len(sizes)
    group = group_of[places]
    return [np.flatnonzero(group == number) for number in np.unique(group)]
