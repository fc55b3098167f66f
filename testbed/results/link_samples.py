"""The samples of links: which stretch of time each one tells about. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from testbed.results.record import LinkRow


def sample_starts(rows: Iterable[LinkRow]) -> Mapping[float, float]:
    """Return, for the time of each sample, when the one before it was taken (s).

    Nothing is recorded of the moment before the first sample; the first stretch counts as long as the second, but
    begins no earlier than the run.
    """
    times = sorted({row.time_s for row in rows})
    if not times:
        return {}
    first = times[0] - (times[1] - times[0] if len(times) > 1 else 1.0)
    begin = max(0.0, first) if times[0] > 0 else first
    return dict(zip(times, [begin, *times], strict=False))
