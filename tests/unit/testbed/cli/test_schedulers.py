"""``testbed schedulers`` as its user meets it; an example installed as a package is in test_own_scheduler.py."""

from __future__ import annotations

import json
import sys
from importlib.metadata import EntryPoint, EntryPoints
from types import SimpleNamespace
from typing import Any

import pytest

from controller.decision import ClusterView, Decision, Event, StepStarted
from controller.schedulers import registry
from testbed.cli.main import main
from workloads import plugins


class Plain:
    name = "plain"
    summary = "says no more than it must"

    def decide(self, view: ClusterView, event: Event) -> Decision:
        return Decision()


class Coflow(Plain):
    name = "coflow"
    decides = ("levels", "rates")
    events = frozenset({StepStarted})
    source = "[red]A Journal[/], 2020"


class NeedsAnOption:
    name = "needs-an-option"

    def __init__(self, *, factor: float) -> None:
        self.summary = f"times {factor}"

    def decide(self, view: ClusterView, event: Event) -> Decision:
        return Decision()


def made_by_a_function() -> Plain:
    return Coflow()


PLUG_INS = {
    "plain": f"{__name__}:Plain",
    "coflow": f"{__name__}:Coflow",
    "by-function": f"{__name__}:made_by_a_function",
    "needs-an-option": f"{__name__}:NeedsAnOption",
    "gone": "no_such_module_anywhere:Scheduler",
    "no-class": f"{__name__}:PLUG_INS",
}


@pytest.fixture
def plug_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, __name__, SimpleNamespace(**globals()))
    points = EntryPoints(EntryPoint(name, value, registry.GROUP) for name, value in PLUG_INS.items())
    monkeypatch.setattr(plugins, "entry_points", lambda **wanted: points.select(**wanted))


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    assert main(["schedulers", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    return {entry["name"]: entry for entry in document["schedulers"]}


def test_every_scheduler_that_can_be_named_is_listed_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert tuple(listed(capsys)) == registry.names()


def test_built_in_schedulers_say_what_they_decide_and_come_from_no_package(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = listed(capsys)
    assert found["ecmp"]["decides"] == ["paths"]
    assert found["fixed"]["decides"] == ["paths", "levels", "rates", "shifts"]
    built_in = [entry for name, entry in found.items() if name in ("crux", "ecmp", "ecmp-switch", "fixed")]
    assert [(entry["package"], entry["problem"]) for entry in built_in] == [("", "")] * 4
    assert all(entry["summary"] for entry in built_in)


def test_what_a_built_in_scheduler_decides_are_columns_of_a_decision() -> None:
    columns = {"paths", "levels", "rates", "shifts", "weights"}
    assert [found.name for found in registry.descriptions() if not columns >= set(found.decides)] == []


@pytest.mark.usefixtures("plug_ins")
def test_a_scheduler_that_says_no_more_than_it_must_hears_of_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    plain = listed(capsys)["plain"]
    assert (plain["decides"], plain["source"], plain["problem"]) == ([], "", "")
    assert plain["events"] == ["JobArrived", "JobDeparted"]


@pytest.mark.usefixtures("plug_ins")
def test_a_class_and_a_function_that_makes_one_are_described_alike(capsys: pytest.CaptureFixture[str]) -> None:
    found = listed(capsys)
    assert found["coflow"]["decides"] == ["levels", "rates"]
    assert found["coflow"]["events"] == ["StepStarted"]
    assert {**found["by-function"], "name": "coflow"} == found["coflow"]


@pytest.mark.usefixtures("plug_ins")
def test_what_cannot_be_used_is_listed_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    found = listed(capsys)
    assert found["gone"]["problem"].startswith("scheduler 'gone' cannot be loaded: ModuleNotFoundError")
    assert found["no-class"]["problem"] == "scheduler 'no-class' is not a class or function but dict"
    assert "factor" in found["needs-an-option"]["problem"]


@pytest.mark.usefixtures("plug_ins")
def test_the_table_shows_markup_of_others_as_it_is_and_names_what_is_broken(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["schedulers"]) == 0
    shown = capsys.readouterr().out
    assert "[red]" in shown and "ModuleNotFoundError" in shown
    assert all(name in shown for name in registry.names())


def test_columns_line_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedulers"]) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines if line.lstrip().startswith(("ecmp ", "ecmp-switch ", "fixed "))]
    assert len({line.index("jobs") for line in rows}) == 1 and len(rows) == 3
