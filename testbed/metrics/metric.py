"""What a metric is, and how metrics become an entry of ``summary.json`` and cells of a table. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from controller.service.json_codec import encode
from testbed.metrics.formats import MISSING

Entry = Mapping[str, Any]
"""Part of ``summary.json``: a run, a job of a run, a run's manager, or a comparison."""
Numbers = TypeVar("Numbers")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its ``title``, and how the metric's value is shown.

    ``share_of``: key of the entry to divide the value by. ``mark``: what an entry appends to its cell. Columns with a
    smaller ``place`` are further left; those of the same place are in the order of the catalogue. ``optional``: 1 for
    the column that a narrow terminal leaves out first, 2 for the next; 0 for one that is always shown. ``note``: what
    its title means, in a few words, where it needs some. ``whole``: shows
    a value together with others of its entry, instead of ``show``.
    """

    title: str
    show: Callable[[Any], str] = str
    place: int = 0
    share_of: str = ""
    mark: Callable[[Entry], str] | None = None
    optional: int = 0
    note: str = ""
    whole: Callable[[Entry], str] | None = None

    def cell(self, entry: Entry, key: str) -> str:
        """The cell for ``key`` of ``entry``; a dash where the entry has no value."""
        value = value_at(entry, key)
        if value is not None and self.share_of:
            whole = entry.get(self.share_of)
            value = value / whole if whole else 0.0
        shown = MISSING if value is None else self._shown(value, entry)
        return shown + (self.mark(entry) if self.mark else "")

    def _shown(self, value: object, entry: Entry) -> str:
        return self.show(value) if self.whole is None else self.whole(entry)


@dataclass(frozen=True, slots=True)
class Metric(Generic[Numbers]):
    """A metric: its dotted ``key`` in ``summary.json``, its ``unit``, its ``meaning`` in a line, and its ``value``.

    ``check``: whether checks may name it. ``managed``: it exists only where a cluster manager places the jobs.
    ``by_job``: a comparison of jobs, one value per job.
    """

    key: str
    unit: str
    meaning: str
    value: Callable[[Numbers], object]
    check: bool = False
    column: Column | None = None
    managed: bool = False
    by_job: bool = False


def entry_of(metrics: Iterable[Metric[Numbers]], numbers: Numbers, *, managed: bool = False) -> dict[str, Any]:
    """The values of ``metrics`` as JSON-ready data in their order; dotted keys become nested objects."""
    entry: dict[str, Any] = {}
    for metric in metrics:
        if managed or not metric.managed:
            put(entry, metric.key, encode(metric.value(numbers)))
    return entry


def put(entry: dict[str, Any], key: str, value: object) -> None:
    """Set the dotted ``key``."""
    *outer, last = key.split(".")
    for name in outer:
        entry = entry.setdefault(name, {})
    entry[last] = value


def value_at(entry: Entry, key: str) -> Any:
    """The value at the dotted ``key``; None where there is none."""
    value: Any = entry
    for name in key.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def columns(metrics: Iterable[Metric[Any]]) -> list[tuple[Metric[Any], Column]]:
    """The metrics that are columns, from left to right."""
    shown = [(metric, metric.column) for metric in metrics if metric.column is not None]
    return sorted(shown, key=lambda each: each[1].place)


def change(old: float | None, new: float | None) -> float | None:
    """Relative change, -0.1 for a tenth less; None where either is missing."""
    return new / old - 1 if old and new is not None else None


def gain(before: Entry | None, after: Entry | None) -> dict[str, float] | None:
    """How many points less are lost, part by part: positive is a gain."""
    if before is None or after is None:
        return None
    return {key: before[key] - after.get(key, 0.0) for key in before if key.endswith("_points")}
