"""``report.html`` of a comparison or a sweep: one file that loads nothing."""

from __future__ import annotations

from pathlib import Path

from testbed.errors import RunFailedError
from testbed.report.comparison.compared_runs import ComparedRuns
from testbed.report.comparison.headline import headline
from testbed.report.comparison.payload import document
from testbed.report.page import assemble
from testbed.results.run_directory import RunDirectory

MAIN = "compare_page.js"
REPORT = "report.html"


def write(compared: ComparedRuns, out: Path, title: str) -> Path:
    """Write ``report.html`` into the folder ``out``, which is made; returns its path.

    Raises ``RunFailedError`` if it cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunFailedError(f"{out / REPORT}: cannot be written: {error.strerror or error}") from error
    shown = document(compared, out)
    text = assemble.page(title, headline(shown), shown, MAIN, libraries=())
    return RunDirectory(out).write_text(REPORT, text)
