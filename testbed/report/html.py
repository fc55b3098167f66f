"""``report.html``: one file with the tables, plots, evidence and decisions of a run; it loads nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup, escape
from rich.table import Table

from controller.decision import Decision
from testbed.errors import BadInputError
from testbed.report.plain_text import PlainTable
from testbed.report.plots import run_plots, write_plots
from testbed.report.tables import doubts, finding_table, left_out, marked, tables
from testbed.results.record import RunRecord
from testbed.results.run_directory import RunDirectory
from topologies.limits import one_line


def build(directory: RunDirectory) -> Path:
    """Draw the plots and write ``report.html`` from the files of ``directory``; returns the report's path.

    Needs all other files to be there; raises ``BadInputError`` with one line for one that is not.
    """
    summary = directory.read_summary()
    records = directory.read_records()
    experiment = directory.read_experiment()
    try:
        plots = run_plots(summary, records, experiment)
    except (ValueError, ArithmeticError) as error:  # numbers of any size are numbers, but none of a run
        what = f"{directory.path}: cannot be drawn ({one_line(str(error))}), expected times and sizes of a run"
        raise BadInputError(what) from error
    write_plots(directory, plots)
    manifest = _manifest(directory)
    return directory.write_text("report.html", page(summary, records, plots, manifest, _changed(directory)))


def page(
    summary: Mapping[str, Any],
    records: Sequence[RunRecord],
    plots: Mapping[str, str],
    manifest: Mapping[str, Any] | None = None,
    changed: Sequence[str] = (),
) -> str:
    """The page as text; ``plots`` are ``<svg>`` elements by file name, ``changed`` files that are not the run's."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("testbed.report"),
        autoescape=True,
        trim_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("report.html.j2").render(
        summary=summary,
        records=records,
        plots=plots,
        manifest=json.dumps(manifest, indent=1) if manifest else "",
        changed=changed,
        tables=tables(summary),
        doubts=doubts(summary),
        left_out=left_out(summary),
        findings=finding_table(summary),
        marked=marked,
        fidelity=_fidelity(summary),
        grid=grid,
        levels=_levels,
    )


def grid(table: Table) -> Markup:
    """A table of the terminal as a table of the page."""
    alignment = ["" if column.justify == "right" else ' class="text"' for column in table.columns]
    head = _row([str(column.header) for column in table.columns], alignment, "th")
    cells = [[str(cell) for cell in column.cells] for column in table.columns]
    body = Markup("").join(_row(row, alignment, "td") for row in zip(*cells, strict=True))
    title = Markup("<h3>{}</h3>").format(str(table.title)) if table.title else Markup("")
    return title + Markup("<table>") + head + body + Markup("</table>")


def _row(cells: Sequence[str], alignment: Sequence[str], tag: str) -> Markup:
    inner = Markup("").join(
        Markup(f"<{tag}{attribute}>") + _cell(cell) + Markup(f"</{tag}>")
        for cell, attribute in zip(cells, alignment, strict=True)
    )
    return Markup("<tr>") + inner + Markup("</tr>\n")


def _cell(text: str) -> Markup:
    if text in ("ok", "degraded", "invalid"):
        return Markup(f'<span class="verdict-{text}">{text}</span>')
    return escape(text)


def _fidelity(summary: Mapping[str, Any]) -> Table:
    table = PlainTable()
    table.add_column("evidence")
    runs = summary["runs"]
    for run in runs:
        table.add_column(run["scheduler"], justify="right")
    names = dict.fromkeys(name for run in runs for name in run["fidelity"] if name != "findings")
    for name in names:
        table.add_row(name.replace("_", " "), *(_evidence(run["fidelity"].get(name)) for run in runs))
    return table


def _evidence(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(str(item) for item in value) or "none"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _levels(decision: Decision) -> str:
    if not decision.levels:
        return "one level for all"
    return ", ".join(f"{name}: {level}" for name, level in sorted(decision.levels.items(), key=lambda item: item[::-1]))


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
