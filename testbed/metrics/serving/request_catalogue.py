"""Metrics of requests, part of :mod:`testbed.metrics.catalogue`. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from testbed.metrics import formats
from testbed.metrics.metric import Column, Metric, value_at

if TYPE_CHECKING:  # it imports numpy
    from testbed.metrics.measured import MeasuredJob

_PARTS: Final = {"mean": "mean", "p50": "median", "p95": "95th percentile", "p99": "99th percentile"}
_SPREADS: Final = (
    ("waiting_s", "time that a request waits for its prefill"),
    ("first_token_s", "time to first token: from the arrival of a request"),
    ("cache_s", "time in which its keys and values are sent to its decode instance"),
    ("between_tokens_s", "time between two tokens of an answer"),
)


def _of(key: str) -> Callable[[MeasuredJob], object]:
    return lambda job: value_at(job.requests, key)


REQUESTS: Final[tuple[Metric[MeasuredJob], ...]] = (
    Metric(
        "serving.requests", "", "requests in the window; null without, like those below", _of("requests"), check=True
    ),
    *(
        Metric(f"serving.{key}.{part}", "s", f"{what}, {_PARTS[part]}", _of(f"{key}.{part}"), check=True)
        for key, what in _SPREADS
        for part in _PARTS
    ),
)


def _milliseconds(value: float) -> str:
    return f"{1000 * value:.1f}"


_COLUMNS: Final = {
    "serving.requests": Column("requests"),
    "serving.waiting_s.mean": Column("waits s", formats.seconds, note="for its prefill, mean", optional=2),
    "serving.first_token_s.p50": Column("first token p50 s", formats.seconds),
    "serving.first_token_s.p99": Column("p99 s", formats.seconds),
    "serving.cache_s.p50": Column("cache p50 ms", _milliseconds, note="keys and values, sent to the decode instance"),
    "serving.cache_s.p99": Column("p99 ms", _milliseconds),
    "serving.between_tokens_s.p50": Column("between tokens p50 ms", _milliseconds, optional=1),
    "serving.between_tokens_s.p99": Column("p99 ms ", _milliseconds),
}
REQUEST_COLUMNS: Final = [(metric, _COLUMNS[metric.key]) for metric in REQUESTS if metric.key in _COLUMNS]
"""The columns of the table of requests, from left to right."""
