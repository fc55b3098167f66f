"""Names are shown as they are: in tables they are no markup, in plots no formula, on a terminal no command."""

from __future__ import annotations

import dataclasses
import io
import json
import xml.etree.ElementTree as ET
from html import escape

import pytest
from rich.console import Console

from testbed.experiment.experiment import Experiment
from testbed.experiment.scheduler_choice import SchedulerChoice
from testbed.metrics.summary import summary
from testbed.progress import Progress
from testbed.report import html, plots
from testbed.report.plain_text import REPLACEMENT
from testbed.report.tables import new_table, render, show_summary, tables
from testbed.results.record import Fidelity, RunRecord

NAMES = ["[red]x", "[/]", "[/nowhere]", r"a\[b]", "$x$", r"$\frac$", r"\$1$2$", "$", "<b>&amp;</b>"]


def renamed(experiment: Experiment, record: RunRecord, name: str) -> tuple[Experiment, RunRecord]:
    """The same with ``name`` for the job ``big`` and for the scheduler."""
    job = dataclasses.replace(experiment.jobs[0], name=name)
    rows = tuple(dataclasses.replace(row, job=name) if row.job == "big" else row for row in record.iterations)
    windows = {name if job == "big" else job: window for job, window in record.windows.items()}
    named = dataclasses.replace(record, choice=SchedulerChoice(name), iterations=rows, windows=windows, decisions=())
    return dataclasses.replace(experiment, jobs=(job, *experiment.jobs[1:])), named


@pytest.mark.parametrize("name", NAMES)
def test_a_name_stands_in_tables_report_and_plots_as_it_is(
    experiment: Experiment, records: tuple[RunRecord, ...], name: str
) -> None:
    named, record = renamed(experiment, records[1], name)
    document = summary(named, (record,))
    text = render(tables(document), width=200)
    assert text.count(name) == 2 + len(named.jobs)
    drawn = plots.run_plots(document, (record,), named)
    for drawing in drawn.values():
        assert name in "".join(ET.fromstring(drawing).itertext())
    page = html.page(document, (record,), named)
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert name in [job["name"] for job in data["jobs"]] and data["runs"][0]["scheduler"] == name
    assert escape(name) in page.partition("</header>")[0]


def test_a_terminal_gets_no_control_characters(experiment: Experiment, records: tuple[RunRecord, ...]) -> None:
    doubtful = dataclasses.replace(records[1], fidelity=Fidelity("degraded", ("\x1b]0;title\x07 and \x9b2J",)))
    stream = io.StringIO()
    show_summary(summary(experiment, (doubtful,)), Console(file=stream, width=200, color_system=None))
    assert not any(char in stream.getvalue() for char in "\x1b\x07\x9b")
    assert f"{REPLACEMENT}]0;title{REPLACEMENT} and {REPLACEMENT}2J" in stream.getvalue()


def test_titles_and_headers_are_plain_too() -> None:
    table = new_table("[bold]title", left=("[red]left",), right=("[/]right",), last="[x]last")
    table.add_row("1", "2", "3")
    assert all(word in render([table]) for word in ("[bold]title", "[red]left", "[/]right", "[x]last"))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_phase_of_the_progress_display_is_plain() -> None:
    stream = Terminal()
    with Progress(quiet=False, stream=stream) as progress:
        progress.phase("[/]nowhere: run", 1.0)
        progress.advance_to(0.5, "[/]there")
    assert "[/]nowhere" in stream.getvalue()
