"""Plots of experiments as files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Final

from testbed.report.plain_text import without_formulas
from testbed.report.plots import svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEAD: Final = '<?xml version="1.0" encoding="utf-8" standalone="no"?>\n'


def write_plot(plot: Figure, out: Path, name: str) -> None:
    """Write ``name.svg`` and ``name.png`` into ``out``."""
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.svg").write_text(_HEAD + svg(plot), "utf-8")
    stream = io.BytesIO()
    without_formulas(plot).savefig(stream, format="png", dpi=150)
    (out / f"{name}.png").write_bytes(stream.getvalue())
