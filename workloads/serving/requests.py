"""Requests to a large model: drawn as a Poisson process, or read from published traces."""

from __future__ import annotations

import csv
import json
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

from topologies.limits import LimitError, read_text
from workloads.imported.errors import WorkloadFileError
from workloads.serving.served import Request

MOST_REQUESTS: Final = 100_000
MOST_TOKENS: Final = 10_000_000
"""Of a prompt, or of an answer."""
TRACE_BYTES: Final = 2**26
_AZURE: Final = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
_MOONCAKE: Final = ("timestamp", "input_length", "output_length")


@dataclass(frozen=True, slots=True)
class PoissonArrivals:
    """``count`` requests at ``rate`` per second on average, with exponential times between them, all alike."""

    rate: float
    prompt: int
    output: int
    count: int

    def requests(self, seed: str) -> tuple[Request, ...]:
        """Return the requests that ``seed`` draws."""
        draw, now, found = random.Random(f"requests {seed}"), 0.0, []
        for _ in range(self.count):
            now += draw.expovariate(self.rate)
            found.append(Request(now, self.prompt, self.output))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class RecordedArrivals:
    """Requests of a trace; their times count from the first."""

    recorded: tuple[Request, ...]

    def requests(self, seed: str) -> tuple[Request, ...]:
        """Return the requests of the trace, whatever the ``seed``."""
        del seed
        return self.recorded


Arrivals = PoissonArrivals | RecordedArrivals


def read_requests(path: Path, most: int = MOST_REQUESTS) -> RecordedArrivals:
    """Return the first ``most`` requests of a trace, in the order of their times.

    Two forms: CSV of the Azure LLM inference traces (``TIMESTAMP,ContextTokens,GeneratedTokens``, dates), and JSON
    lines of Mooncake (``timestamp`` in milliseconds, ``input_length``, ``output_length``). Raises
    :class:`WorkloadFileError` with the line that is wrong.
    """
    try:
        text = read_text(path, TRACE_BYTES)
    except (OSError, LimitError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise WorkloadFileError(str(path), 1, f"cannot be read: {why}", "a trace of requests") from None
    lines = text.splitlines()
    if not any(line.strip() for line in lines):
        raise WorkloadFileError(str(path), 1, "is empty", "a trace of requests")
    rows = _json_rows(path, lines) if lines[0].lstrip().startswith("{") else _csv_rows(path, lines)
    found = [_request(path, line, row) for line, row in islice(rows, most)]
    if not found:
        raise WorkloadFileError(str(path), len(lines), "has no request", "at least one")
    first = min(request.arrival_s for request in found)
    ordered = sorted(found, key=lambda request: request.arrival_s)
    return RecordedArrivals(tuple(Request(each.arrival_s - first, each.prompt, each.output) for each in ordered))


_Row = tuple[Any, Any, Any, Callable[[Any], float]]


def _csv_rows(path: Path, lines: list[str]) -> Iterator[tuple[int, _Row]]:
    header = tuple(cell.strip() for cell in lines[0].split(","))
    if any(name not in header for name in _AZURE):
        expected = f"the columns {','.join(_AZURE)}, or JSON lines with {', '.join(_MOONCAKE)}"
        raise WorkloadFileError(str(path), 1, f"begins with '{lines[0][:60]}'", expected)
    places = [header.index(name) for name in _AZURE]
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            cells = next(csv.reader([line]))
            if len(cells) != len(header):
                raise WorkloadFileError(str(path), number, f"has {len(cells)} cells", str(len(header)))
            at, prompt, output = (cells[place].strip() for place in places)
            yield number, (at, prompt, output, _date_s)


def _json_rows(path: Path, lines: list[str]) -> Iterator[tuple[int, _Row]]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            at, prompt, output = (row[name] for name in _MOONCAKE)
        except (ValueError, KeyError, TypeError, RecursionError):
            expected = f"an object with {', '.join(_MOONCAKE)}"
            raise WorkloadFileError(str(path), number, "is no request", expected) from None
        yield number, (at, prompt, output, _milliseconds_s)


def _date_s(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _milliseconds_s(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError
    return value / 1000


def _request(path: Path, line: int, row: _Row) -> Request:
    at, prompt, output, seconds = row
    try:
        arrival_s = seconds(at)
    except (ValueError, OverflowError, OSError):
        raise WorkloadFileError(str(path), line, f"time '{str(at)[:40]}' is none", "a date or milliseconds") from None
    return Request(arrival_s, _tokens(path, line, "prompt", prompt), _tokens(path, line, "answer", output))


def _tokens(path: Path, line: int, what: str, value: object) -> int:
    try:
        tokens = int(value) if isinstance(value, str | int) and not isinstance(value, bool) else 0
    except ValueError:
        tokens = 0
    if not 1 <= tokens <= MOST_TOKENS:
        shown = f"the {what} has '{str(value)[:40]}' tokens"
        raise WorkloadFileError(str(path), line, shown, f"1 to {MOST_TOKENS}")
    return tokens
