"""What links have sent, and what waits at them, as rows of the record."""

from __future__ import annotations

from testbed.engines.flow.networks.network import Network, QueueSample
from testbed.results.record import LinkRow

_NO_QUEUE = QueueSample(0.0, 0.0, 0.0, 0)


def link_rows(now: float, network: Network) -> list[LinkRow]:
    """A row for each link and level at which something has happened since the last call."""
    sent, queues = network.take_bytes(), network.take_queues()
    places = sorted({*sent, *queues}) if queues else list(sent)
    return [_row(now, link, level, sent, queues.get((link, level), _NO_QUEUE)) for link, level in places]


def _row(now: float, link: str, level: int, sent: dict[tuple[str, int], float], queue: QueueSample) -> LinkRow:
    return LinkRow(
        time_s=now,
        link=link,
        level=level,
        bytes=sent.get((link, level), 0.0),
        queued_bytes=queue.queued,
        drops=queue.dropped,
        longest_queue_bytes=queue.longest,
        paused_s=queue.paused_s,
    )
