"""What commands print: tables and lines that fit the terminal, or on a pipe a stated width."""

from __future__ import annotations

import io
import os
import sys
import textwrap
from collections.abc import Iterable
from typing import Final

from rich.console import Console
from rich.table import Table

from testbed.report.fitting import fitted
from testbed.report.plain_text import printable

PIPE_WIDTH: Final = 120
"""Columns of tables that go to no terminal, unless the variable ``COLUMNS`` says another number."""
_NARROWEST: Final = 20


def output() -> Console:
    """Standard output, as wide as the terminal or, on a pipe, as :data:`PIPE_WIDTH` says."""
    asked = os.environ.get("COLUMNS", "")
    width = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 5 else 0
    if not sys.stdout.isatty():
        return Console(width=max(width or PIPE_WIDTH, _NARROWEST), highlight=False)
    console = Console(highlight=False)
    console.width = max(console.width, _NARROWEST)
    return console


def show(tables: Iterable[Table], console: Console | None = None) -> None:
    """Print tables, fitted to the console; on standard output unless one is given."""
    out = console or output()
    for table in tables:
        out.print(fitted(table, out.width, out))


def say(lines: Iterable[str], console: Console | None = None, style: str | None = None) -> None:
    """Print lines: on a terminal wrapped between words, elsewhere as they are, so that programs find them whole."""
    out = console or output()
    for line in lines:
        for part in _wrapped(line, out.width) if out.is_terminal else (line,):
            out.print(printable(part), markup=False, highlight=False, style=style, soft_wrap=True)


def _wrapped(line: str, width: int) -> list[str]:
    settings = {"break_long_words": False, "break_on_hyphens": False, "replace_whitespace": False}
    return textwrap.wrap(line, width, subsequent_indent="  ", **settings) or [""]  # type: ignore[arg-type]


def render(tables: Iterable[Table], width: int = 140) -> str:
    """The tables as plain text of at most ``width`` columns."""
    stream = io.StringIO()
    show(tables, Console(file=stream, width=width, color_system=None))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())
