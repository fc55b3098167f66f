"""Rows of a run as CSV text and back: ``iterations.csv``, ``links.csv``, ``messages.csv`` and others.

Times in seconds from the start of the run, sizes in bytes. Numbers are written so that reading
gives back the very same ones.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from testbed.results.record import AloneRow, IterationRow, LinkRow, MessageRow, RequestRow

ITERATION_COLUMNS: Final[Mapping[str, type]] = {
    "job": str,
    "gpu": str,
    "iteration": int,
    "start_s": float,
    "compute_s": float,
    "communication_s": float,
    "exposed_s": float,
    "end_s": float,
    "straggler_s": float,
    "disturbed": bool,
}
LINK_COLUMNS: Final[Mapping[str, type]] = {
    "time_s": float,
    "link": str,
    "level": int,
    "bytes": float,
    "queued_bytes": float,
    "drops": int,
    "longest_queue_bytes": float,
    "paused_s": float,
}
_LATER_COLUMNS: Final = 2
"""Of a link's row, that older versions did not write."""
MESSAGE_COLUMNS: Final[Mapping[str, type]] = {
    "job": str,
    "iteration": int,
    "phase": int,
    "flow": str,
    "bytes": float,
    "start_s": float,
    "end_s": float,
    "empty_network_s": float,
}
REQUEST_COLUMNS: Final[Mapping[str, type]] = {
    "job": str,
    "request": int,
    "iteration": int,
    "prompt": int,
    "output": int,
    "arrival_s": float,
    "prefill_s": float,
    "first_token_s": float,
    "cache_s": float,
    "last_token_s": float,
}
ALONE_COLUMNS: Final[Mapping[str, type]] = {
    "job": str,
    "iteration": int,
    "idle_gpu_s": float,
    "without_collisions_gpu_s": float,
}

_Row = TypeVar("_Row")
_FLAGS: Final = {"0": False, "1": True}


class RowError(ValueError):
    """A line that is no row; ``line`` counts from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def iterations_to_csv(rows: Iterable[IterationRow]) -> str:
    """The text of ``iterations.csv``."""
    return _to_csv(rows, ITERATION_COLUMNS)


def links_to_csv(rows: Iterable[LinkRow]) -> str:
    """The text of ``links.csv``."""
    return _to_csv(rows, LINK_COLUMNS)


def messages_to_csv(rows: Iterable[MessageRow]) -> str:
    """The text of ``messages.csv``."""
    return _to_csv(rows, MESSAGE_COLUMNS)


def messages_from_csv(text: str) -> tuple[MessageRow, ...]:
    """The rows of ``messages.csv``; :class:`RowError` names the first line that is none."""
    return _from_csv(text, MESSAGE_COLUMNS, _message)


def _message(values: dict[str, Any]) -> MessageRow:
    if values["empty_network_s"] <= 0.0:
        raise ValueError("empty_network_s must be above 0")
    return MessageRow(**values)


def requests_to_csv(rows: Iterable[RequestRow]) -> str:
    """The text of ``requests.csv``."""
    return _to_csv(rows, REQUEST_COLUMNS)


def requests_from_csv(text: str) -> tuple[RequestRow, ...]:
    """The rows of ``requests.csv``; :class:`RowError` names the first line that is none."""
    return _from_csv(text, REQUEST_COLUMNS, lambda values: RequestRow(**values))


def alone_to_csv(rows: Iterable[AloneRow]) -> str:
    """The text of ``alone.csv``."""
    return _to_csv(rows, ALONE_COLUMNS)


def alone_from_csv(text: str) -> tuple[AloneRow, ...]:
    """The rows of ``alone.csv``; :class:`RowError` names the first line that is none."""
    return _from_csv(text, ALONE_COLUMNS, lambda values: AloneRow(**values))


def iterations_from_csv(text: str) -> tuple[IterationRow, ...]:
    """The rows of ``iterations.csv``; :class:`RowError` names the first line that is none."""
    return _from_csv(text, ITERATION_COLUMNS, lambda values: IterationRow(**values))


def links_from_csv(text: str) -> tuple[LinkRow, ...]:
    """The rows of ``links.csv``; :class:`RowError` names the first line that is none."""
    return _from_csv(text, LINK_COLUMNS, lambda values: LinkRow(**values), _LATER_COLUMNS)


def _to_csv(rows: Iterable[object], columns: Mapping[str, type]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(_cell(getattr(row, name), kind) for name, kind in columns.items())
    return stream.getvalue()


def _cell(value: Any, kind: type) -> str:
    if kind is float:
        return repr(float(value))
    return str(int(value)) if kind in (int, bool) else str(value)


def _from_csv(
    text: str, columns: Mapping[str, type], build: Callable[[dict[str, Any]], _Row], later: int = 0
) -> tuple[_Row, ...]:
    """The rows; the ``later`` last columns may be missing."""
    reader = csv.reader(io.StringIO(text))
    header = next(_lines(reader), [])
    if later and header == list(columns)[:-later]:
        columns = dict(list(columns.items())[:-later])
    if header != list(columns):
        raise RowError(1, f"the columns are '{','.join(header)[:200]}' and not '{','.join(columns)}'")
    rows = []
    for cells in _lines(reader):
        if len(cells) != len(columns):
            raise RowError(reader.line_num, f"{len(cells)} cells instead of {len(columns)}")
        try:
            rows.append(
                build({name: _value(cell, kind) for (name, kind), cell in zip(columns.items(), cells, strict=True)})
            )
        except (ValueError, KeyError) as error:
            raise RowError(reader.line_num, f"not a row ({error})") from error
    return tuple(rows)


def _lines(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    try:
        yield from reader
    except csv.Error as error:
        raise RowError(getattr(reader, "line_num", 1), f"not a row ({error})") from error


def _value(cell: str, kind: type) -> object:
    value = _FLAGS[cell] if kind is bool else kind(cell)
    if kind is float and not math.isfinite(value):
        raise ValueError(f"{cell} is not finite")
    return value
