from __future__ import annotations

import json
from pathlib import Path

import pytest

import testbed
from testbed.errors import BadInputError
from testbed.report.comparison.compared_runs import address, collect, link_to
from testbed.report.comparison.settings import differing, flattened, short_names


def test_values_have_the_keys_that_set_takes() -> None:
    scenario = {
        "name": "x",
        "seed": 1,
        "fabric": {"kind": "clos", "tors": 2},
        "jobs": [{"name": "big", "overlap": 0.5}],
    }
    assert dict(flattened(scenario)) == {"fabric.kind": "clos", "fabric.tors": 2, "jobs.big.overlap": 0.5}


def test_lists_without_names_are_values() -> None:
    assert dict(flattened({"link_failures": [], "hosts": ["h0", "h1"]})) == {"link_failures": [], "hosts": ["h0", "h1"]}


def test_only_what_differs_is_compared_and_what_differs_together_counts_once() -> None:
    runs = [
        {"a": "1", "b": "x", "c": "0", "d": "p"},
        {"a": "1", "b": "y", "c": "1", "d": "p"},
        {"a": "1", "b": "y", "c": "1"},
    ]
    assert differing(runs) == ("b", "d")
    assert differing([]) == differing(runs[:1]) == ()


def test_keys_are_as_short_as_tells_them_apart() -> None:
    assert short_names(["jobs.small.overlap", "measure.warmup"]) == ["overlap", "warmup"]
    assert short_names(["jobs.small.overlap", "jobs.big.overlap"]) == ["small.overlap", "big.overlap"]


def test_runs_with_other_values_are_told_apart_by_them(tmp_path: Path) -> None:
    done = [
        testbed.run("hello", engine="flow", overrides=[f"jobs.small.overlap={overlap}"], out=tmp_path).directory
        for overlap in (0.0, 0.5)
    ]
    compared = collect(done)
    assert compared.keys == ("jobs.small.overlap",)
    assert [run.settings["jobs.small.overlap"] for run in compared.runs] == ["0.0", "0.5"]


def test_runs_of_different_scenarios_have_no_parameters_in_common(tmp_path: Path) -> None:
    done = [testbed.run(name, engine="flow", out=tmp_path).directory for name in ("hello", "moe-alltoall")]
    assert collect(done).keys == ()


def test_runs_without_a_scenario_compare_all_the_same(write_run, records) -> None:
    first, second = write_run(*records), write_run(*records)
    (second.path / "scenario.yaml").write_text("a: [", "utf-8")
    compared = collect([first.path, second.path])
    assert (len(compared.runs), compared.keys) == (2, ())


def test_every_directory_that_is_no_run_has_its_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInputError) as caught:
        collect([tmp_path / "empty", tmp_path / "nowhere"])
    assert [line.split(": ")[1] for line in str(caught.value).splitlines()] == [
        "no summary.json in it, expected the directory of a run",
        "no such directory, expected the directory of a run",
    ]


@pytest.mark.parametrize("place", ["../outside", "/etc", "a/../../outside", 7, None])
def test_a_sweep_leads_no_file_out_of_its_folder(place, tmp_path: Path) -> None:
    point = {"point": "p", "set": {}, "seed": 1, "directory": place, "problem": "not run", "runs": []}
    (tmp_path / "sweep.json").write_text(json.dumps({"points": [point]}), "utf-8")
    if place is None:
        assert collect([tmp_path]).missing == ("p: not run",)
    else:
        with pytest.raises(BadInputError, match="damaged"):
            collect([tmp_path])


@pytest.mark.parametrize("document", ["[]", "{}", '{"points": 3}', '{"points": [3]}', "nothing"])
def test_a_damaged_sweep_is_refused_in_one_line(document: str, tmp_path: Path) -> None:
    (tmp_path / "sweep.json").write_text(document, "utf-8")
    with pytest.raises(BadInputError, match=r"sweep.json: .*expected") as caught:
        collect([tmp_path])
    assert len(str(caught.value).splitlines()) == 1


def test_links_lead_to_reports_beside_the_page_and_nowhere_else(write_run, records, tmp_path: Path) -> None:
    directory = write_run(*records)
    (run,) = collect([directory.path]).runs
    assert link_to(run, tmp_path / "comparison") == ""
    (directory.path / "report.html").write_text("", "utf-8")
    assert link_to(run, tmp_path / "comparison") == f"./../{directory.path.name}/report.html"


@pytest.mark.parametrize("name", ["javascript:alert(1)", "//elsewhere", "a?b#c", 'x" onclick="y', "ü", "<b>"])
def test_no_name_becomes_an_address_of_another_kind(name: str) -> None:
    made = address(f"{name}/report.html")
    assert made.startswith("./") and not set(made) & set(":?#<>\"' ")
