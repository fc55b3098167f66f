"""``report.html``: one file with the tables, plots, evidence and decisions of a run; it loads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed.errors import BadInputError
from testbed.experiment.experiment import Experiment
from testbed.report.page.assemble import page as assembled
from testbed.report.page.payload import payload
from testbed.report.plots import run_plots, write_plots
from testbed.results.record import RunRecord
from testbed.results.run_directory import RunDirectory
from topologies.limits import one_line


def build(directory: RunDirectory, *, plots: bool = False) -> Path:
    """Write ``report.html`` from the files of ``directory``; returns its path.

    ``plots``: also draw the plots as files, which takes several times as long; nothing without matplotlib. Needs all
    other files to be there; raises ``BadInputError`` with one line for one that is not.
    """
    summary, records = directory.read_summary(), directory.read_records()
    return write(directory, summary, records, directory.read_experiment(), plots=plots)


def write(
    directory: RunDirectory,
    summary: Mapping[str, Any],
    records: Sequence[RunRecord],
    experiment: Experiment,
    *,
    plots: bool = False,
) -> Path:
    """As :func:`build`, for a run that is known already: reading thousands of rows again takes seconds."""
    try:
        text = page(summary, records, experiment, _manifest(directory), _changed(directory))
        drawn = run_plots(summary, records, experiment) if plots else {}
    except (ValueError, ArithmeticError) as error:  # numbers of any size are numbers, but none of a run
        what = f"{directory.path}: cannot be drawn ({one_line(str(error))}), expected times and sizes of a run"
        raise BadInputError(what) from error
    write_plots(directory, drawn)
    return directory.write_text("report.html", text)


def page(
    summary: Mapping[str, Any],
    records: Sequence[RunRecord],
    experiment: Experiment,
    manifest: Mapping[str, Any] | None = None,
    changed: Sequence[str] = (),
) -> str:
    """The page as text; ``changed`` are files that are not as the run left them."""
    document = payload(summary, records, experiment, manifest, changed)
    title = f"{summary['scenario']}: {', '.join(str(run['scheduler']) for run in summary['runs'])}"
    return assembled(title, document["headline"], document, "run_page.js")


def _changed(directory: RunDirectory) -> Sequence[str]:
    try:
        return directory.changed()
    except BadInputError:
        return ()


def _manifest(directory: RunDirectory) -> Mapping[str, Any] | None:
    try:
        document = directory.read_json("manifest.json")
    except BadInputError:
        return None
    return document if isinstance(document, dict) else None
