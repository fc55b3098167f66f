"""Queues and pauses of a simulation at line rate, as a table of the page: the links where most waited."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from testbed.metrics.formats import seconds
from testbed.report.page.tables_view import Cell, table
from testbed.report.tables import marked
from testbed.results.record import RunRecord
from topologies.fabric import Fabric
from topologies.units import format_size

MOST_ROWS: Final = 20
"""Rows of a scheduler."""
_HEADS: Final = (
    ("link", ""),
    ("scheduler", ""),
    ("kind", "what the link joins"),
    ("level", "priority, 0 is served first"),
    ("longest queue", "most bytes that waited there at a time"),
    ("when s", "the end of the second in which that was"),
    ("paused s", "how long its level was paused"),
    ("drops", "packets that found no room"),
)


@dataclass
class _Queue:
    longest: float = 0.0
    when_s: float = 0.0
    paused_s: float = 0.0
    drops: int = 0


def queue_table(records: Sequence[RunRecord], fabric: Fabric) -> dict[str, Any] | None:
    """The queues that were longest, or paused longest, of each run; None if there were none."""
    rows = [row for record in records for row in _rows(record, fabric)]
    note = f"At most {MOST_ROWS} levels of links for each scheduler, the longest queues first; all are in links.csv."
    return table("queues", "Queues and pauses", _HEADS, 3, rows, note) if rows else None


def _rows(record: RunRecord, fabric: Fabric) -> list[list[Cell]]:
    queues = _queues(record)
    worst = sorted(queues.items(), key=lambda item: (-item[1].longest, -item[1].paused_s, item[0]))[:MOST_ROWS]
    name = marked(record.scheduler, record.fidelity.verdict)
    return [
        [
            link,
            name,
            fabric.links[link].kind if link in fabric.links else "",
            [str(level), level],
            [format_size(queue.longest), queue.longest],
            [seconds(queue.when_s), queue.when_s],
            [seconds(queue.paused_s), queue.paused_s],
            [str(queue.drops), queue.drops],
        ]
        for (link, level), queue in worst
    ]


def _queues(record: RunRecord) -> Mapping[tuple[str, int], _Queue]:
    """(link, level) -> what was seen there over the run, where anything waited or was paused."""
    found: dict[tuple[str, int], _Queue] = defaultdict(_Queue)
    for row in record.links:
        if row.longest_queue_bytes > 0.0 or row.paused_s > 0.0:
            queue = found[row.link, row.level]
            if row.longest_queue_bytes > queue.longest:
                queue.longest, queue.when_s = row.longest_queue_bytes, row.time_s
            queue.paused_s += row.paused_s
            queue.drops += row.drops
    return found
