"""Metrics of how packets of an emulation were spread over paths, and in which order they came. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from testbed.fidelity.spreading import spread_error
from testbed.metrics.metric import Metric
from topologies.network.load_balancing import SpreadCount

if TYPE_CHECKING:  # it imports numpy, and tables need only keys and formats
    from testbed.metrics.measured import MeasuredRun


def spread_counts(environment: Mapping[str, Any]) -> list[SpreadCount]:
    """The counts of every group in a record's environment; none where packets were not spread."""
    found = environment.get("spread", ())
    return [SpreadCount(each["switch"], tuple(each["interfaces"]), tuple(each["packets"])) for each in found]


def _error(run: MeasuredRun) -> float | None:
    counts = spread_counts(run.record.environment)
    return spread_error(counts) if counts else None


def _out_of_order(run: MeasuredRun) -> object:
    return run.record.environment.get("out_of_order")


SPREAD: Final[tuple[Metric[MeasuredRun], ...]] = (
    Metric(
        "out_of_order",
        "",
        "segments of an emulation that arrived after one that was sent later; null elsewhere",
        _out_of_order,
        check=True,
    ),
    Metric(
        "spread_error",
        "0 to 1",
        "largest share of its due by which a cable got more or fewer of the packets that switches spread; null without",
        _error,
        check=True,
    ),
)
"""In the order of ``summary.json``."""
