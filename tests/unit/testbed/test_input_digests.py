"""What a run read: a digest of every file, and runs that read different things are not averaged."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import testbed
from testbed.bundled_scenarios import folder
from testbed.input_digests import KEY, digests_of, sources_of
from testbed.report.comparison.compared_runs import collect
from testbed.report.comparison.headline import headline
from testbed.report.comparison.payload import document
from testbed.scenario import load
from testbed.sweep.checking import resolve
from topologies.clos import clos
from topologies.formats.node_link import written

SCENARIO = """
name: read
fabric: {node_link: topology.json}
jobs:
  - {name: file, model: {simai: work.txt}, gpus: 4}
  - {name: plain, model: bert-base, gpus: 4}
schedulers: [ecmp, by-name]
measure: {iterations: 3, warmup: 1}
seed: 1
"""
SCHEDULER = """
from testbed.plugins import Decision, Scheduler

class ByName(Scheduler):
    name = "by-name"
    summary = "levels by name"
    def decide(self, view, event):
        return Decision(levels={name: 0 for name in view.jobs})
"""


def write_inputs(place: Path) -> Path:
    """A scenario that reads a topology and a workload."""
    place.mkdir(exist_ok=True)
    fabric = clos(hosts=4, gpus_per_host=2, nics_per_host=1, tors=2, aggregations=2, port_rate=100e9, fabric_rate=100e9)
    (place / "topology.json").write_text(json.dumps(written(fabric)), "utf-8")
    shutil.copy(next(folder().glob("workloads/*tensor2*")), place / "work.txt")
    (place / "scenario.yaml").write_text(SCENARIO, "utf-8")
    return place / "scenario.yaml"


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The source of an installed scheduler ``by-name``."""
    metadata = tmp_path / "installed" / "by_name-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: by-name\nVersion: 1.0\n", "utf-8")
    (metadata / "entry_points.txt").write_text("[testbed.schedulers]\nby-name = by_name_plugin:ByName\n", "utf-8")
    source = metadata.parent / "by_name_plugin.py"
    source.write_text(SCHEDULER, "utf-8")
    monkeypatch.syspath_prepend(str(metadata.parent))
    yield source
    sys.modules.pop("by_name_plugin", None)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_every_file_that_a_run_reads_has_its_digest_in_the_manifest(plugin: Path, tmp_path: Path) -> None:
    scenario = write_inputs(tmp_path / "in")
    done = testbed.run(scenario, engine="flow", out=tmp_path / "runs")
    assert testbed.load(done.directory).manifest[KEY] == {
        "fabric.node_link": {"topology.json": sha256(scenario.parent / "topology.json")},
        "jobs.file.model.simai": {"work.txt": sha256(scenario.parent / "work.txt")},
        "schedulers.by-name": {"by_name_plugin.py": sha256(plugin)},
    }


def test_all_traces_of_a_folder_have_a_digest_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    for rank in range(2):
        (tmp_path / "traces" / f"rank.{rank}.et").write_bytes(bytes([rank]))
    scenario = load("hello", [f"jobs.small.model={{chakra: {tmp_path / 'traces'}}}"])
    traces = {path.name: sha256(path) for path in (tmp_path / "traces").iterdir()}
    assert digests_of(scenario) == {"jobs.small.model.chakra": traces} and len(traces) == 2


def test_the_source_of_a_plug_in_is_its_module_or_all_of_its_package(plugin: Path, tmp_path: Path) -> None:
    package = plugin.parent / "by_name_package"
    (package / "inner").mkdir(parents=True)
    for name in ("__init__.py", "inner/__init__.py", "inner/part.py", "notes.txt"):
        (package / name).touch()
    assert sources_of("by_name_plugin") == {"by_name_plugin.py": plugin}
    assert set(sources_of("by_name_package")) == {"__init__.py", "inner/__init__.py", "inner/part.py"}
    assert sources_of("no_such_package_anywhere") == {}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs with seeds 1 and 2, one with another topology, one of the same files elsewhere, one without digests."""
    out, place = tmp_path_factory.mktemp("runs"), tmp_path_factory.mktemp("in")
    scenario = write_inputs(place)

    def run(name: str, path: Path, seed: int) -> Path:
        done = testbed.run(path, engine="flow", schedulers=["ecmp", "sglb"], seed=seed, out=out)
        return done.directory.rename(out / name)

    found = {name: run(name, scenario, seed) for name, seed in (("one", 1), ("two", 2), ("old", 3))}
    shutil.copytree(place, place / "elsewhere")
    found["moved"] = run("moved", place / "elsewhere" / "scenario.yaml", 4)
    topology = place / "topology.json"
    topology.write_text(re.sub(r"100000000000\.0|100000000000", "50000000000", topology.read_text("utf-8")), "utf-8")
    found["other"] = run("other", scenario, 5)
    found["older"] = out / "older"
    shutil.copytree(found["old"], found["older"])
    for name in ("old", "older"):
        manifest = found[name] / "manifest.json"
        recorded = {key: value for key, value in json.loads(manifest.read_text("utf-8")).items() if key != KEY}
        manifest.write_text(json.dumps(recorded), "utf-8")
    return found


def test_runs_with_the_same_files_are_averaged_wherever_the_files_were(runs: dict[str, Path]) -> None:
    compared = testbed.compare(runs["one"], runs["two"], runs["moved"])
    assert [(row["scheduler"], row["runs"], row["inputs"]) for row in compared["means"]] == [
        ("ecmp", 3, {}),
        ("sglb", 3, {}),
    ]
    assert compared["remarks"] == []


def test_runs_whose_files_differ_are_not_averaged_and_one_line_names_the_file(runs: dict[str, Path]) -> None:
    compared = testbed.compare(runs["one"], runs["two"], runs["other"])
    digest = {
        name: testbed.load(runs[name]).manifest[KEY]["fabric.node_link"]["topology.json"][:12]
        for name in runs
        if "old" not in name
    }
    assert [row["runs"] for row in compared["means"]] == [2, 2]
    assert compared["means"][0]["inputs"] == {"fabric.node_link": f"sha256 {digest['one']}"}
    assert compared["remarks"] == [
        "read, flow: not averaged together, topology.json (fabric.node_link) differs: "
        f"sha256 {digest['one']} in one, two; sha256 {digest['other']} in other"
    ]


def test_runs_whose_settings_differ_are_not_averaged_and_the_key_is_named(tmp_path: Path) -> None:
    done = [
        testbed.run("hello", engine="flow", overrides=[f"jobs.small.overlap={overlap}"], seed=seed, out=tmp_path)
        for overlap, seed in ((0.0, 1), (0.5, 1), (0.5, 2))
    ]
    names = [each.directory.name for each in done]
    compared = testbed.compare(*(each.directory for each in done))
    assert [(row["runs"], row["inputs"]) for row in compared["means"]] == [(2, {"jobs.small.overlap": "0.5"})] * 2
    (line,) = compared["remarks"]
    assert line == (
        "hello, flow: not averaged together, jobs.small.overlap differs: "
        f"0.0 in {names[0]}; 0.5 in {names[1]}, {names[2]}"
    )


def test_of_runs_without_digests_it_is_said_that_nobody_knows(runs: dict[str, Path]) -> None:
    compared = testbed.compare(runs["old"], runs["older"])
    assert [row["runs"] for row in compared["means"]] == [2, 2]
    assert compared["remarks"] == [
        f"read, flow: unknown whether {key} was the same in old, older: no digest was recorded"
        for key in ("fabric.node_link", "jobs.file.model.simai")
    ]


def test_a_run_without_digests_is_not_taken_for_one_with(runs: dict[str, Path]) -> None:
    compared = testbed.compare(runs["one"], runs["two"], runs["old"])
    assert [row["runs"] for row in compared["means"]] == [2, 2]
    assert "(content unknown) in old" in compared["remarks"][0]


def test_a_run_without_a_readable_scenario_is_kept_apart(runs: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(runs["two"], tmp_path / "bare")
    (tmp_path / "bare" / "scenario.yaml").unlink()
    compared = testbed.compare(runs["one"], runs["two"], tmp_path / "bare")
    assert [row["runs"] for row in compared["means"]] == [2, 2]
    assert compared["remarks"] == ["read, flow: unknown which scenario bare had: no readable scenario.yaml"]


def test_the_page_keeps_them_apart_as_the_terminal_does(runs: dict[str, Path], tmp_path: Path) -> None:
    shown = document(collect([runs["one"], runs["two"], runs["other"]]), tmp_path)
    assert shown["keys"] == ["node_link"]
    assert [group["runs"] for group in shown["groups"]] == [2, 2, 1, 1]
    assert "Of 2 combinations" in headline(shown)


def test_a_scheduler_with_other_options_is_another_and_the_others_are_averaged(tmp_path: Path) -> None:
    done = [
        testbed.run("hello", engine="flow", overrides=[f"schedulers=[ecmp, {entry}]"], seed=seed, out=tmp_path)
        for seed, entry in ((1, "crux"), (2, "{name: crux, priorities: false}"))
    ]
    compared = testbed.compare(*(each.directory for each in done))
    assert [row["scheduler"] for row in compared["means"]] == ["ecmp"]
    assert [line.partition(" differs: ")[0] for line in compared["remarks"]] == [
        "hello, flow: not averaged together, schedulers.crux"
    ]
    groups = document(collect([each.directory for each in done]), tmp_path)["groups"]
    assert [(group["scheduler"], group["runs"]) for group in groups] == [("ecmp", 2), ("crux", 1), ("crux", 1)]


def test_the_source_of_a_plug_in_that_changed_keeps_its_runs_apart(plugin: Path, tmp_path: Path) -> None:
    scenario = write_inputs(tmp_path / "in")
    first = testbed.run(scenario, engine="flow", out=tmp_path / "runs").directory
    plugin.write_text(SCHEDULER + "\n# changed\n", "utf-8")
    second = testbed.run(scenario, engine="flow", out=tmp_path / "runs", seed=2).directory
    compared = testbed.compare(first, second)
    assert [row["scheduler"] for row in compared["means"]] == ["ecmp"]
    assert "by_name_plugin.py (schedulers.by-name) differs: by-name, sha256" in compared["remarks"][0]


def test_points_of_a_sweep_whose_files_changed_are_made_again(plugin: Path, tmp_path: Path) -> None:
    scenario = write_inputs(tmp_path / "in")
    before = resolve(str(scenario), (), 1)
    assert resolve(str(scenario), (), 1) == before
    plugin.write_text(SCHEDULER + "\n# changed\n", "utf-8")
    after = resolve(str(scenario), (), 1)
    topology = scenario.parent / "topology.json"
    topology.write_text(topology.read_text("utf-8") + "\n", "utf-8")
    assert len({before.digest, after.digest, resolve(str(scenario), (), 1).digest}) == 3


def test_runs_with_different_baselines_have_no_mean_of_points(tmp_path: Path) -> None:
    done = [
        testbed.run("hello", engine="flow", schedulers=names, seed=seed, out=tmp_path).directory
        for seed, names in ((1, ["ecmp", "crux"]), (2, ["sglb", "crux"]))
    ]
    compared = testbed.compare(*done)
    (crux,) = compared["means"]
    assert (crux["scheduler"], crux["runs"], crux["gpu_utilization_points"]) == ("crux", 2, None)
    assert compared["remarks"] == ["hello, flow: no mean of points over runs with different baselines: ecmp, sglb"]
