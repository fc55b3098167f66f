"""CSV tables with a header, read a line at a time: what is wrong names its file and line.

A damaged file is refused with :class:`TraceError`: a missing column, a line cut short, a number that
is no number, a negative amount. A cell without content is a blank; each reader
decides what a blank means. A line without any content is counted and skipped.
"""

from __future__ import annotations

import codecs
import csv
import io
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Final, NoReturn, TextIO

from topologies.input.file_error import InputFileError
from topologies.limits import (
    TRACE_BYTES,
    TRACE_COMMENTS,
    TRACE_LINE,
    TRACE_NUMBER,
    LimitError,
    open_regular,
)

BLANKS: Final = frozenset({"", "None", "none", "NaN", "nan", "NaT", "null", "NULL"})
"""Cells that mean no value where a number or a time is expected."""

EMPTY_ROW: Final = "empty row"
"""Why a line without content is left out."""

COMMENT: Final = "#"
"""Lines that begin with it, before the header, do not belong to the table."""

SEPARATORS: Final[Mapping[str, str]] = {";": "';'", "\t": "tabs", "|": "'|'"}
"""Of cells, where they are not commas, and what to call them."""

_TIME_FORMATS: Final = ("%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S")
_TIMES: Final = "a time such as 2023-07-15 00:50:00"


class TraceError(InputFileError):
    """A file of a trace cannot be used: ``file:line: what is wrong, expected what``."""


class Header(dict[str, int]):
    """Name of a column -> its place; ``line`` of the file has the names."""

    def __init__(self, columns: Mapping[str, int], line: int) -> None:
        super().__init__(columns)
        self._line = line
        self._by_lower = {name.lower(): name for name in columns}

    def refuse_other_capitals(self, file: str, name: str) -> None:
        """Raise :class:`TraceError` if there is no column ``name`` but one that differs in capitals only."""
        other = self._by_lower.get(name.lower(), name)
        if other != name:
            raise TraceError(file, self._line, f"a column is called '{other}'", f"'{name}', in these capitals")


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table: ``values`` by the places that ``columns`` gives their names."""

    file: str
    line: int
    columns: Mapping[str, int]
    values: Sequence[str]

    def text(self, name: str) -> str:
        """The cell's text, without blanks around it; empty if the table has no such column.

        A column that differs in capitals only is refused: what it says would be left out without a word.
        """
        place = self.columns.get(name)
        if place is None and isinstance(self.columns, Header):
            self.columns.refuse_other_capitals(self.file, name)
        return "" if place is None else self.values[place].strip()

    def number(self, name: str) -> float | None:
        """A finite number of at least 0, or None for a blank; raises :class:`TraceError` for anything else."""
        said = self.text(name)
        if said in BLANKS:
            return None
        try:
            value = float(said) if "_" not in said else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self.fail(f"{name} is {said!r}", "a number")
        if value < 0:
            self.fail(f"{name} is {said}", "0 or more")
        if value > TRACE_NUMBER:
            self.fail(f"{name} is {said}", f"at most {TRACE_NUMBER:g}")
        return value

    def count(self, name: str) -> int | None:
        """A whole number of at least 0, or None for a blank."""
        value = self.number(name)
        if value is not None and value != int(value):
            self.fail(f"{name} is {self.text(name)}", "a whole number")
        return None if value is None else int(value)

    def time(self, name: str) -> float | None:
        """A calendar time in seconds since 1970, or None for a blank; UTC unless it has an offset."""
        said = self.text(name)
        if said in BLANKS:
            return None
        seconds = seconds_of(said)
        if seconds is None:
            self.fail(f"{name} is {said!r}", _TIMES)
        return seconds

    def fail(self, what: str, expected: str) -> NoReturn:
        """Raise the :class:`TraceError` of this line."""
        raise TraceError(self.file, self.line, what, expected)


def seconds_of(said: str) -> float | None:
    """Return seconds since 1970 of a calendar time (UTC unless it has an offset), None if it is no time."""
    try:
        return _seconds(datetime.fromisoformat(said))
    except (ValueError, OverflowError):
        pass
    for form in _TIME_FORMATS:
        try:
            return _seconds(datetime.strptime(said, form))
        except (ValueError, OverflowError):
            continue
    return None


def _seconds(moment: datetime) -> float:
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def read_rows(
    path: Path, required: Sequence[str], skipped: Counter[str], header: Sequence[str] | None = None
) -> Iterator[Row]:
    """Yield the lines of a CSV file that have content; those without are counted in ``skipped``.

    ``header`` names the columns of a file whose first line holds values. Raises :class:`TraceError`
    if the file cannot be read, is no UTF-8, lacks a ``required`` column, or has a damaged line.
    """
    with reading(path) as file:
        yield from _rows(file, str(path), required, skipped, header)


def first_line(path: Path) -> tuple[str, ...]:
    """Return the names in the header of a CSV file, none if it is empty; raises :class:`TraceError` as above."""
    with reading(path) as file:
        above, start = comments_of(lines_of(file, str(path)), str(path))
        try:
            return tuple(cell.strip() for cell in next(csv.reader([start]), ()))
        except csv.Error as error:
            raise TraceError(str(path), len(above) + 1, f"damaged line ({error})", "a header of CSV") from None


@contextmanager
def reading(path: Path) -> Iterator[TextIO]:
    """Open a table; :class:`TraceError` where it cannot be read or is no UTF-8, also while it is read."""
    try:
        with io.TextIOWrapper(open_regular(path, TRACE_BYTES), encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError:
        raise TraceError(str(path), _line_of_damage(path), "not UTF-8 text", "a CSV file") from None
    except LimitError as error:
        raise TraceError(str(path), None, str(error), f"a CSV file of at most {TRACE_BYTES} bytes") from None
    except OSError as error:
        raise TraceError(str(path), None, f"cannot be read ({error.strerror})", "a CSV file") from None


def lines_of(file: TextIO, name: str) -> Iterator[str]:
    """Yield the lines of the file called ``name``; :class:`TraceError` for one that is too long."""
    for number, line in enumerate(iter(lambda: file.readline(TRACE_LINE + 1), ""), 1):
        if len(line) > TRACE_LINE:
            raise TraceError(name, number, f"a line of more than {TRACE_LINE} characters", "a CSV file")
        yield line


def comments_of(lines: Iterator[str], name: str) -> tuple[list[str], str]:
    """Return the comment lines at the top, and the line after them, empty if there is none."""
    comments: list[str] = []
    for line in lines:
        if not line.startswith(COMMENT):
            return comments, line
        comments.append(line)
        if len(comments) > TRACE_COMMENTS:
            raise TraceError(name, len(comments), "too many comments", f"at most {TRACE_COMMENTS} lines of them")
    return comments, ""


def _rows(
    file: TextIO, name: str, required: Sequence[str], skipped: Counter[str], header: Sequence[str] | None
) -> Iterator[Row]:
    lines = lines_of(file, name)
    above, start = comments_of(lines, name)
    comments = len(above)
    if not start:
        raise TraceError(name, 1, "the file is empty", f"a header with the columns {', '.join(required)}")
    reader = csv.reader(chain([start], lines), strict=True)
    try:
        top = [cell.strip() for cell in next(reader)]
        headless = header is not None and not set(required) <= set(top)
        names = list(header) if headless and header is not None else top
        columns = _columns(name, comments + 1, names, required)
        for values in chain([top] if headless else [], reader):
            line = comments + reader.line_num
            if not any(cell.strip() for cell in values):
                skipped[EMPTY_ROW] += 1
                continue
            yield Row(name, line, columns, _fitted(name, line, values, names))
    except csv.Error as error:
        raise TraceError(name, comments + reader.line_num, f"damaged line ({error})", "whole CSV lines") from None


def written_otherwise(names: Sequence[str], required: Sequence[str]) -> str:
    """Why ``required`` columns are not among ``names`` although they are there; empty if they are not."""
    why, missing = partly_otherwise(names, required)
    return "" if missing else why


def partly_otherwise(names: Sequence[str], required: Sequence[str]) -> tuple[str, list[str]]:
    """What is other about those ``required`` columns that are there, and which are not there in any case."""
    split, separator = cells_of(names)
    present = {each.lower() for each in split}
    found = [each for each in required if each.lower() in present]
    reasons = [f"cells are separated by {SEPARATORS[separator]}"] if separator else []
    capitals = [each for each in found if each not in split]
    if capitals:
        reasons.append(f"{', '.join(capitals)} written with other capitals")
    return " and ".join(reasons), [each for each in required if each not in found]


def cells_of(names: Sequence[str]) -> tuple[list[str], str]:
    """The names of a header that may be separated otherwise, and what separates them; empty if it is commas."""
    if not names or any(names[1:]):
        return list(names), ""
    separator = next((each for each in SEPARATORS if each in names[0]), "")
    return [each.strip() for each in names[0].split(separator)] if separator else list(names), separator


def _columns(name: str, line: int, names: Sequence[str], required: Sequence[str]) -> Mapping[str, int]:
    present = frozenset(names)
    missing = [column for column in required if column not in present]
    if missing:
        plural = "s" if len(missing) > 1 else ""
        why, gone = partly_otherwise(names, required)
        besides = (
            f"; {', '.join(gone)} {'is' if len(gone) == 1 else 'are'} not there in any case" if why and gone else ""
        )
        what = f"no column{plural} {', '.join(missing)}{f': {why}' if why else ''}{besides}"
        raise TraceError(name, line, what, f"the columns {', '.join(required)}")
    count = Counter(names)
    doubled = next((column for column in names if column and count[column] > 1), None)
    if doubled is not None:
        raise TraceError(name, line, f"two columns are called {doubled}", "each column once")
    return Header({column: place for place, column in enumerate(names) if column}, line)


def _fitted(name: str, line: int, values: Sequence[str], names: Sequence[str]) -> Sequence[str]:
    """The values, one per column: blank columns too many or too few at the end do no harm."""
    if len(values) > len(names) and any(cell.strip() for cell in values[len(names) :]):
        raise TraceError(name, line, f"the line has {len(values)} values", f"{len(names)}, one per column")
    if len(values) < len(names):
        if any(column and not column.startswith("Unnamed") for column in names[len(values) :]):
            raise TraceError(name, line, f"the line ends after {len(values)} of {len(names)} values", "a whole line")
        return [*values, *[""] * (len(names) - len(values))]
    return values


def _line_of_damage(path: Path) -> int:
    """The first line that is no UTF-8."""
    decoder, line = codecs.getincrementaldecoder("utf-8")(), 1
    with open_regular(path, TRACE_BYTES) as file:
        for part in iter(lambda: file.read(TRACE_LINE), b""):
            try:
                decoder.decode(part)
            except UnicodeDecodeError as error:
                return line + error.object.count(b"\n", 0, error.start)
            line += part.count(b"\n")
    return line
