"""Names and messages in tables and plots as plain text.

They come from scenarios, plug-ins and files of other people. rich would read ``[red]`` in them as markup, matplotlib
``$x$`` as a formula, and a terminal what follows an escape character as a command.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def printable(text: str) -> str:
    """Return ``text`` with characters that cannot be shown replaced; lines stay lines."""
    return "".join(char if char.isprintable() or char == "\n" else REPLACEMENT for char in text)


class PlainTable(Table):
    """A table that shows strings as they are; a :class:`~rich.text.Text` keeps its style.

    ``optional``: titles of columns that may be left out where there is no room, the least important first.
    ``splits``: places of columns at which a table that is still too wide may go on below, beside its first column.
    ``notes``: title of a column -> what it means, said below the table where the column is shown.
    """

    optional: tuple[str, ...] = ()
    splits: tuple[int, ...] = ()
    notes: Mapping[str, str] = MappingProxyType({})

    def __init__(self, *, title: str | None = None, **settings: Any) -> None:
        super().__init__(title=None if title is None else Text(printable(title), style="table.title"), **settings)

    def add_column(self, header: Any = "", *rest: Any, **settings: Any) -> None:
        """As of rich, with a plain header."""
        super().add_column(_plain(header), *rest, **settings)

    def add_row(self, *cells: Any, **settings: Any) -> None:
        """As of rich, with plain cells."""
        super().add_row(*map(_plain, cells), **settings)


def _plain(cell: Any) -> Any:
    return Text(printable(cell)) if isinstance(cell, str) else cell


def without_formulas(plot: Figure) -> Figure:
    """Have every text of ``plot`` drawn as it is, dollar signs included; returns ``plot``."""
    from matplotlib.text import Text as DrawnText

    for text in plot.findobj(DrawnText):
        assert isinstance(text, DrawnText)
        text.set_parse_math(False)
    return plot
