"""Requests of a serving job: waiting, time to the first token, sending of caches, time between tokens. Pure.

Requests count that arrived in the window of their job and whose iteration nothing disturbed. The time between tokens is
that of all tokens but the first of a request, also of those after a cache that came late.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from testbed.results.record import RequestRow, RunRecord
from workloads.job import Job
from workloads.serving.decoding import Waiting, decode
from workloads.serving.served import Served

Floats = NDArray[np.float64]
_SPREADS: Final[Mapping[str, Callable[[RequestRow], float]]] = {
    "waiting_s": lambda row: row.time_to_first_token_s - row.prefill_s,
    "first_token_s": lambda row: row.time_to_first_token_s,
    "cache_s": lambda row: row.cache_s - row.first_token_s,
}


def request_metrics(record: RunRecord, job: Job) -> Mapping[str, object]:
    """The values of :data:`testbed.metrics.serving.request_catalogue.REQUESTS` of ``job``, by key; nothing without."""
    window = record.windows.get(job.name)
    if job.served is None or window is None:
        return {}
    disturbed = {row.iteration for row in record.iterations if row.job == job.name and row.disturbed}
    own = [row for row in record.requests if row.job == job.name]
    rows = [row for row in own if window.start_s <= row.arrival_s and row.iteration not in disturbed]
    if not rows:
        return {}
    found: dict[str, object] = {"requests": len(rows)}
    for key, value in _SPREADS.items():
        found[key] = _spread(np.array([value(row) for row in rows]), np.ones(len(rows)))
    gaps = np.array(_gaps(job.served, own, {row.request for row in rows}))
    found["between_tokens_s"] = _spread(gaps[:, 0], gaps[:, 1]) if len(gaps) else None
    return found


def _gaps(served: Served, rows: Sequence[RequestRow], counted: set[int]) -> list[tuple[float, int]]:
    """(seconds between two tokens, how often), of instances with requests that count."""
    by_instance: dict[int, list[RequestRow]] = defaultdict(list)
    for row in rows:
        by_instance[row.request % served.decode_instances].append(row)
    found: list[tuple[float, int]] = []
    for own in by_instance.values():
        since = min((row.cache_s for row in own if row.request in counted), default=None)
        waiting = [Waiting(row.first_token_s, row.cache_s, row.prompt, row.output) for row in own]
        decoded = decode(waiting, served.decode)
        found += [] if since is None else [(gap, count) for gap, count, end_s in decoded.gaps if end_s > since]
    return found


def _spread(values: Floats, weights: Floats) -> dict[str, float]:
    """Mean and percentiles of ``values`` that count ``weights`` times: the smallest that as many do not exceed."""
    order = np.argsort(values)
    ordered, reached = values[order], np.cumsum(weights[order])
    places = np.searchsorted(reached, np.array([0.5, 0.95, 0.99]) * reached[-1])
    p50, p95, p99 = (float(value) for value in ordered[np.minimum(places, len(ordered) - 1)])
    return {"mean": float(np.average(values, weights=weights)), "p50": p50, "p95": p95, "p99": p99}
