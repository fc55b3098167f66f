"""Metrics of messages, part of :mod:`testbed.metrics.catalogue`. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from testbed.metrics.metric import Column, Metric

if TYPE_CHECKING:  # they import numpy
    from testbed.metrics.measured import MeasuredJob, MeasuredRun

_NOTE: Final = "slowest 1 % of messages: time / time in an empty network"
PERCENTILES: Final = {"p50": "median", "p95": "95th percentile", "p99": "99th percentile"}


def _of_messages(name: str) -> Callable[[MeasuredJob | MeasuredRun], object]:
    return lambda measured: getattr(measured.messages, name, None)


def _spread_of(name: str, key: str) -> Callable[[MeasuredJob | MeasuredRun], object]:
    return lambda measured: getattr(getattr(measured.messages, name, None), key, None)


def messages(*, column: bool) -> tuple[Metric[Any], ...]:
    """Metrics of the messages of a job or of all jobs; ``column``: whether a table shows one of them."""
    shown = Column("slowdown", lambda value: f"{value:.2f}", optional=3, note=_NOTE) if column else None
    spreads: list[Metric[Any]] = [
        Metric(
            f"messages.{name}.{key}",
            unit,
            f"{what}, {PERCENTILES[key]}",
            _spread_of(name, key),
            check=True,
            column=shown if (name, key) == ("slowdown", "p99") else None,
        )
        for name, unit, what in (
            ("completion_s", "s", "flow completion time of a message"),
            ("slowdown", "", "flow completion time / time in an empty network"),
        )
        for key in PERCENTILES
    ]
    return (
        Metric("messages.count", "", "messages in the window; null without, like those below", _of_messages("count")),
        *spreads,
        Metric("messages.by_size", "", "the same by size: `from_bytes`, `to_bytes`, ...", _of_messages("by_size")),
    )
