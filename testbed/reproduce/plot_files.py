"""Plots of experiments as files."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from testbed.machine.distribution import has_extra, remedy
from testbed.report.plain_text import without_formulas
from testbed.report.plots import svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEAD: Final = '<?xml version="1.0" encoding="utf-8" standalone="no"?>\n'


def write_plot(draw: Callable[[], Figure], out: Path, name: str) -> None:
    """Write what ``draw`` returns to ``name.svg`` and ``name.png`` in ``out``.

    Without matplotlib one line on standard error says so: the rows of the experiment do not depend on it.
    """
    if not has_extra("plots"):
        print(f"{name} is not drawn: {remedy('plots')}", file=sys.stderr)
        return
    plot = draw()
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.svg").write_text(_HEAD + svg(plot), "utf-8")
    stream = io.BytesIO()
    without_formulas(plot).savefig(stream, format="png", dpi=150)
    (out / f"{name}.png").write_bytes(stream.getvalue())
