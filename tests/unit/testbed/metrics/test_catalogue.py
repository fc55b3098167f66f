"""The catalogue of metrics: what is in it once is in the summary, the tables, the checks and the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from testbed.metrics import catalogue, documentation
from testbed.metrics.catalogue import COMPARISON, JOB, RUN, check_names
from testbed.metrics.checks import parse_check, unknown_names
from testbed.metrics.managers.manager_metrics import MANAGER, OUTCOMES
from testbed.metrics.metric import Column, Metric, columns, entry_of, value_at
from testbed.metrics.summary import summary
from testbed.report import tables
from testbed.results.record import Fidelity

ROOT = Path(__file__).parents[4]
SCOPES: list[tuple[Metric[Any], ...]] = [RUN, JOB, (*OUTCOMES, *MANAGER), COMPARISON]


def leaves(document: Mapping[str, Any], keys: set[str], prefix: str = "") -> Iterator[str]:
    """Dotted keys of ``document``, down to those in ``keys``."""
    for name, value in document.items():
        key = f"{prefix}{name}"
        if key in keys or not isinstance(value, Mapping):
            yield key
        else:
            yield from leaves(value, keys, f"{key}.")


@pytest.fixture(scope="module")
def document(experiment: Any, records: Any) -> dict[str, Any]:
    return summary(experiment, records)


@pytest.mark.parametrize("metrics", SCOPES)
def test_every_key_is_there_once_with_a_meaning_in_one_line(metrics: tuple[Metric[Any], ...]) -> None:
    keys = [metric.key for metric in metrics]
    assert len(set(keys)) == len(keys)
    assert [metric.key for metric in metrics if not metric.meaning or "\n" in metric.meaning] == []


def test_the_summary_has_the_keys_of_the_catalogue_in_its_order(document: dict[str, Any]) -> None:
    run, crux = document["runs"][0], document["comparison"]["crux"]
    for metrics, entry in ((RUN, run), (JOB, run["jobs"][0]), (COMPARISON, crux)):
        keys = [metric.key for metric in metrics if not metric.managed]
        assert list(leaves(entry, set(keys))) == keys


def test_all_evidence_of_a_verdict_is_in_the_catalogue() -> None:
    keys = {metric.key.partition(".")[2] for metric in RUN if metric.key.startswith("fidelity.")}
    assert keys == {field.name for field in fields(Fidelity)}


def test_a_new_metric_of_jobs_reaches_summary_checks_tables_and_documentation(
    experiment: Any, records: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    new: Metric[Any] = Metric("host_count", "", "hosts it is on", lambda job: 7, check=True, column=Column("hosts"))
    extended = (*JOB, new)
    for module in (catalogue, tables):
        monkeypatch.setattr(module, "JOB", extended)
    document = summary(experiment, records)
    assert document["runs"][0]["jobs"][0]["host_count"] == 7
    assert check_names(extended)[-1] == "host_count"
    assert parse_check("crux.big.host_count == 7").evaluate(document).passed
    assert "hosts" in tables.render([tables.job_table(document)])
    assert "| `host_count` |  | hosts it is on |" in list(documentation.table(extended))


def test_checks_accept_every_name_of_the_catalogue_and_no_other() -> None:
    for metrics, owner in ((RUN, "crux"), (JOB, "crux.big")):
        for metric in metrics:
            unknown = unknown_names(parse_check(f"{owner}.{metric.key} == 1"), ["crux"], ["big"])
            assert bool(unknown) != metric.check


def test_a_cell_is_a_dash_where_an_entry_of_an_older_version_has_no_value() -> None:
    shown = columns([*RUN, *JOB])
    assert {column.cell({"jct_source": "projected"}, metric.key) for metric, column in shown} == {"-"}


def test_columns_stand_by_place_and_then_as_in_the_catalogue() -> None:
    metrics: list[Metric[int]] = [
        Metric(key, "", key, lambda number: number, column=Column(key, place=place))
        for key, place in (("late", 2), ("first", 0), ("second", 0))
    ]
    assert [metric.key for metric, _ in columns(metrics)] == ["first", "second", "late"]


def test_dotted_keys_are_objects() -> None:
    metrics: list[Metric[int]] = [Metric(key, "", key, lambda number: number) for key in ("a.b", "c", "a.d.e")]
    entry = entry_of(metrics, 3)
    assert entry == {"a": {"b": 3, "d": {"e": 3}}, "c": 3}
    assert (value_at(entry, "a.d.e"), value_at(entry, "a.x"), value_at(entry, "c.x")) == (3, None, None)


@pytest.mark.parametrize("page", ["docs/reference/results.md", "docs/reference/checks.md"])
def test_the_documentation_has_the_tables_of_today(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    assert documentation.with_tables(text) == text, f"python -m testbed.metrics.documentation --write {page}"


def test_pages_are_written_and_those_without_markers_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- check names -->\nold\n<!-- /check names -->\nafter\n", "utf-8")
    assert documentation.main(["--write", str(page)]) == 0
    text = page.read_text("utf-8")
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text and "`jct_source`" in text
    page.write_text("nothing\n", "utf-8")
    assert documentation.main(["--write", str(page)]) == 2
    assert "no marker" in capsys.readouterr().err
    assert documentation.main([]) == 0
    assert "| `gpu_utilization` |" in capsys.readouterr().out
