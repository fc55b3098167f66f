"""Every column that needs words has them where it stands: below the table, and in the page's tooltips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from rich.table import Table

from testbed.experiment.experiment import Experiment
from testbed.metrics.comparison import side_by_side
from testbed.metrics.summary import summary
from testbed.report.fitting import new_table
from testbed.report.page.tables_view import table_views
from testbed.report.plain_text import PlainTable
from testbed.report.tables import comparison_tables, manager_table, render, tables
from testbed.results.record import RunRecord

NEED_WORDS = {
    *("points", "start %", "straggler %", "exposed %", "+- %", "JCT +- %", "level", "spread", "own connections"),
    *("TFLOP per GPU-second", "queue s", "all s", "stops", "migrations", "held %", "hosts", "open"),
}
Records = tuple[RunRecord, RunRecord]


def titles(table: Table) -> list[str]:
    return [str(column.header) for column in table.columns]


def managed() -> Table:
    times = {f"jct_{which}_s": 2e-5 for which in ("mean", "p50", "p95", "p99")}
    counts = {"preemptions": 0.0, "migrations": 0.0, "unfinished": [], "allocated": 0.5, "hosts_per_job": 1.0}
    manager = {**times, "queue_mean_s": 2e-5, "makespan_s": 2e-5, **counts}
    shown = manager_table({"runs": [{"scheduler": "ecmp", "fidelity": {"verdict": "ok"}, "manager": manager}]})
    assert shown is not None
    return shown


@pytest.fixture(scope="module")
def shown(experiment: Experiment, records: Records) -> Sequence[Table]:
    document = summary(experiment, records)
    others = comparison_tables(side_by_side({"a": document, "b": {**document, "seed": document["seed"] + 1}}))
    return [*tables(document), *others, managed()]


def test_every_column_that_needs_words_is_explained_below_its_table(shown: Sequence[Table]) -> None:
    found = set()
    for table in shown:
        assert isinstance(table, PlainTable)
        found |= NEED_WORDS & {*titles(table)}
        assert [each for each in titles(table) if each in NEED_WORDS and not table.notes.get(each)] == []
        text = " ".join(render([table], width=200).split())
        assert [each for each in titles(table) if each in table.notes and f"{each}: " not in text] == []
    assert found == NEED_WORDS


def test_a_column_that_is_left_out_is_not_explained() -> None:
    notes = {"kept": "of this", "gone": "of that"}
    table = new_table("", left=("name",), right=("kept", "gone"), optional=("gone",), notes=notes)
    table.add_row("a", "1.000000", "2.000000")
    assert "kept: of this; gone: of that" in render([table], width=80)
    narrow = " ".join(render([table], width=16).split())
    assert "kept: of this" in narrow and "of that" not in narrow and "left out at 16 columns: gone" in narrow


def test_every_number_on_the_page_has_a_tooltip(experiment: Experiment, records: Records) -> None:
    views = table_views(summary(experiment, records))
    assert {"runs", "jobs", "losses"} <= {view["id"] for view in views}
    columns: list[dict[str, Any]] = [column for view in views for column in view["columns"] if not column["text"]]
    assert [column["title"] for column in columns if not column["meaning"]] == []


def test_times_of_a_manager_have_a_unit_that_shows_them() -> None:
    assert render([managed()], width=200).count(" 20us ") == 6
