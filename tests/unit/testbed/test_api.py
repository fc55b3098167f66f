"""``import testbed``: a run, what it would do, the run read back, and runs side by side."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import testbed
from testbed.api import RunResult
from testbed.errors import BadInputError

ROOT = Path(__file__).parents[3]
HEAVY = ("pydantic", "numpy", "yaml", "testbed.api")


@pytest.fixture(scope="module")
def hello(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    out = tmp_path_factory.mktemp("runs")
    done: RunResult = testbed.run("hello", engine="flow", overrides=["measure.iterations=3"], out=out)
    return done


def test_importing_the_testbed_imports_nothing_else() -> None:
    program = f"import sys, testbed; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_its_functions_are_listed_and_others_are_unknown() -> None:
    assert {"run", "plan", "load", "compare"} <= set(dir(testbed))
    with pytest.raises(AttributeError, match="module 'testbed' has no attribute 'walk'"):
        testbed.walk  # noqa: B018


def test_a_run_says_where_its_files_are_and_what_it_found(hello: RunResult) -> None:
    assert hello.status == 0
    assert json.loads((hello.directory / "summary.json").read_text("utf-8")) == hello.summary


def test_a_plan_has_a_decision_per_scheduler_and_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    document = testbed.plan("hello", schedulers=["crux"], seed=3)
    assert (document["scenario"], document["seed"]) == ("hello", 3)
    assert [entry["scheduler"] for entry in document["schedulers"]] == ["crux"]
    assert not list(tmp_path.iterdir())


def test_a_finished_run_is_read_back(hello: RunResult) -> None:
    run = testbed.load(str(hello.directory))
    assert run.summary == hello.summary
    assert run.manifest["seed"] == hello.summary["seed"]
    assert list(run.records) == [entry["scheduler"] for entry in hello.summary["runs"]]
    assert all(len(record.iterations) > 0 and record.decisions for record in run.records.values())


def test_runs_are_compared_by_their_names(hello: RunResult, tmp_path: Path) -> None:
    again = testbed.run("hello", engine="flow", overrides=["measure.iterations=3"], seed=2, out=tmp_path)
    document = testbed.compare(hello.directory, again.directory)
    schedulers = [entry["scheduler"] for entry in hello.summary["runs"]]
    assert [(row["scheduler"], row["seed"]) for row in document["runs"]] == [
        (scheduler, seed) for seed in (hello.summary["seed"], 2) for scheduler in schedulers
    ]
    assert [row["scheduler"] for row in document["means"]] == schedulers


def test_what_is_no_finished_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match=r"no summary\.json in it"):
        testbed.load(tmp_path)
    with pytest.raises(BadInputError, match="no such directory"):
        testbed.compare(tmp_path / "gone")
    with pytest.raises(BadInputError, match="nothing to compare"):
        testbed.compare()


def test_a_scenario_that_is_wrong_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("fabric: {kind: ring}\n", "utf-8")
    with pytest.raises(BadInputError, match=r"own\.yaml:1: unknown kind of fabric 'ring'"):
        testbed.plan(path)
