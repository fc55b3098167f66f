"""Make a table fit a width: leave out its least important columns and say so, go on below, wrap; nothing is cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from textwrap import wrap
from types import MappingProxyType
from typing import Final

from rich import box
from rich.console import Console, Group, RenderableType
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from testbed.report.plain_text import PlainTable

_UNBOUNDED: Final = 1_000_000
_NARROWEST: Final = 4
"""Characters that a column keeps where even the words of a table do not fit."""


def new_table(
    title: str,
    *,
    left: Sequence[str],
    right: Sequence[str] = (),
    last: str = "",
    optional: Sequence[str] = (),
    splits: Sequence[int] = (),
    notes: Mapping[str, str] = MappingProxyType({}),
) -> PlainTable:
    """An empty table: columns of text, of numbers, and a last one of text that may wrap.

    ``optional``: titles of columns that :func:`fitted` may leave out, the least important first. ``splits``: places of
    columns at which it may go on below; for tables without ``optional``. ``notes``: title -> what the column means.
    """
    table = PlainTable(
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1),
        collapse_padding=True,
    )
    table.optional, table.splits, table.notes = tuple(optional), tuple(splits), notes
    for name in left:
        table.add_column(name, no_wrap=True)
    for name in right:
        table.add_column(name, justify="right")
    if last:
        table.add_column(last)
    return table


def fitted(table: Table, width: int, console: Console) -> RenderableType:
    """Return ``table`` in at most ``width`` characters, with a line that names the columns it had to leave out.

    The title is above it and not in it: a title may be wider than its table. Words are kept whole as long as that is
    possible; after that the widest columns break them.
    """
    if not isinstance(table, PlainTable):
        return table
    kept, gone = list(table.columns), list[str]()
    room = width - _frame(table, len(kept), console)
    for title in table.optional:
        if sum(_range(column, console).minimum for column in kept) <= room:
            break
        if title in (present := [str(column.header) for column in kept]):
            del kept[present.index(title)]
            gone.append(title)
        room = width - _frame(table, len(kept), console)
    blocks = _blocks(kept, table.splits, lambda columns: _fits(table, columns, width, console))
    body = [_laid_out(table, columns, width, console) for columns in blocks]
    above = [Text(str(table.title), style="table.title")] if table.title else []
    return Group(*above, *body, *_below(table, kept, gone, width))


def _below(table: PlainTable, kept: Sequence[Column], gone: Sequence[str], width: int) -> list[Text]:
    """What the columns that are shown mean, and which are not shown."""
    shown = {str(column.header) for column in kept}
    said = "; ".join(f"{title}: {note}" for title, note in table.notes.items() if title in shown)
    lines = wrap(said, width) if said else []
    lines += [f"left out at {width} columns: {', '.join(gone)}"] if gone else []
    return [Text("\n".join(lines) + "\n", style="dim")] if lines else []


def _fits(table: PlainTable, columns: Sequence[Column], width: int, console: Console) -> bool:
    """Whether the words of ``columns`` stay whole in ``width`` characters."""
    return sum(_range(column, console).minimum for column in columns) + _frame(table, len(columns), console) <= width


def _laid_out(table: PlainTable, columns: Sequence[Column], width: int, console: Console) -> Table:
    room = width - _frame(table, len(columns), console)
    return _rebuilt(table, columns, _allot([_range(column, console) for column in columns], room))


def _blocks(
    columns: Sequence[Column], splits: Sequence[int], fits: Callable[[Sequence[Column]], bool]
) -> list[list[Column]]:
    """Cut ``columns`` at some of ``splits`` so that each block ``fits``, if it can; all begin with the first column."""
    cuts = [0, *splits, len(columns)] if splits else [0, len(columns)]
    first, *pieces = [list(columns[begin:end]) for begin, end in pairwise(cuts)]
    blocks = [first]
    for piece in pieces:
        if fits([*blocks[-1], *piece]):
            blocks[-1] += piece
        else:
            blocks.append([columns[0], *piece])
    return blocks


def _frame(table: Table, columns: int, console: Console) -> int:
    """Characters of a table of so many ``columns`` that are no cells: padding and edges."""
    padding = {"padding": table.padding, "pad_edge": table.pad_edge, "collapse_padding": table.collapse_padding}
    empty = Table(box=table.box, **padding)  # type: ignore[arg-type]
    for _ in range(columns):
        empty.add_column("x")
    return _measure(empty, console).maximum - columns


def _range(column: Column, console: Console) -> Measurement:
    """The widths that keep the words of a column whole, and its lines; numbers stay on their line."""
    header, *cells = (_measure(cell, console) for cell in (column.header, *column.cells))
    whole = column.no_wrap or column.justify == "right"
    words = max([_on_two_lines(str(column.header)), *(cell.maximum if whole else cell.minimum for cell in cells)])
    longest = max([header.maximum, *(cell.maximum for cell in cells)])
    return Measurement(max(words, min(longest, column.min_width or 0)), longest)


def _on_two_lines(title: str) -> int:
    """The width at which a title takes two lines."""
    words = title.split()
    splits = range(1, len(words))
    halves = (max(len(" ".join(words[:at])), len(" ".join(words[at:]))) for at in splits)
    return min(halves, default=len(title))


def _measure(what: object, console: Console) -> Measurement:
    return Measurement.get(console, console.options.update(width=_UNBOUNDED), what)  # type: ignore[arg-type]


def _allot(ranges: Sequence[Measurement], room: int) -> list[int]:
    """Share ``room`` between columns: their minimum each, then to those that need least first."""
    widths = [each.minimum for each in ranges]
    while sum(widths) > room and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    needs = sorted(range(len(ranges)), key=lambda index: ranges[index].maximum - widths[index])
    spare = max(0, room - sum(widths))
    for place, index in enumerate(needs):
        more = min(ranges[index].maximum - widths[index], spare // (len(needs) - place))
        widths[index] += more
        spare -= more
    return widths


def _rebuilt(table: PlainTable, kept: Sequence[Column], widths: Sequence[int]) -> Table:
    shown = PlainTable(
        box=table.box,
        pad_edge=table.pad_edge,
        padding=table.padding,
        collapse_padding=table.collapse_padding,
    )
    for column, width in zip(kept, widths, strict=True):
        shown.add_column(column.header, justify=column.justify, width=width, overflow="fold", no_wrap=False)
    cells = [list(column.cells) for column in kept]
    for number, row in enumerate(table.rows):
        shown.add_row(*(own[number] for own in cells), end_section=row.end_section)
    return shown
