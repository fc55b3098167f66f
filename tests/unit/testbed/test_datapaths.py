"""The datapath of a scenario's runs: one for each scheduler, one scale for all, and where it is written down."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import testbed
from testbed.api import prepare
from testbed.cli.main import main
from testbed.errors import CannotRunError
from testbed.experiment.capacity import ESTIMATES
from testbed.experiment.experiment import Experiment
from testbed.experiment.scale_search import ScaleSearch
from testbed.results.record import RunRecord
from testbed.results.run_directory import RunDirectory
from testbed.sweep import checking
from topologies.datapath import Datapath

NO_KERNEL: dict[Datapath, str] = {"kernel": "no module", "nftables": "", "userspace": ""}
USERSPACE_ONLY: dict[Datapath, str] = {**NO_KERNEL, "nftables": "not installed"}


@pytest.fixture
def with_nftables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.needs.datapaths_here", lambda: NO_KERNEL)


@pytest.fixture
def without_nftables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.needs.datapaths_here", lambda: USERSPACE_ONLY)


def datapaths(schedulers: Sequence[str], *overrides: str, engine: str = "emulation") -> list[Datapath]:
    found = prepare("hello", engine=engine, schedulers=schedulers, overrides=overrides)
    return [experiment.datapath for experiment in found.experiments]


@pytest.mark.usefixtures("with_nftables")
def test_every_scheduler_has_the_best_datapath_that_carries_it() -> None:
    assert datapaths(["ecmp", "crux"]) == ["nftables", "nftables"]
    assert datapaths(["ecmp-switch", "crux"]) == ["userspace", "nftables"]
    assert datapaths(["ecmp-switch", "crux"], "datapath=userspace") == ["userspace", "userspace"]


@pytest.mark.usefixtures("with_nftables")
def test_all_schedulers_of_a_scenario_run_at_the_scale_of_the_weakest_datapath() -> None:
    fast, mixed = (prepare("clos96", schedulers=schedulers) for schedulers in (["crux"], ["ecmp-switch", "crux"]))
    slow = prepare("clos96", schedulers=["crux"], datapath="userspace")
    assert (fast.capacity, mixed.capacity) == (ESTIMATES["nftables"], ESTIMATES["userspace"])
    assert {experiment.scale for experiment in mixed.experiments} == {slow.experiments[0].scale}
    assert fast.experiments[0].scale.bandwidth < slow.experiments[0].scale.bandwidth


@pytest.mark.usefixtures("with_nftables")
def test_the_flow_engine_ignores_the_key() -> None:
    assert datapaths(["ecmp-switch"], "datapath=nftables", engine="flow") == ["userspace"]
    assert prepare("hello", engine="flow", datapath="kernel").datapaths == {}


def test_validate_and_flow_runs_do_not_ask_what_the_machine_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("testbed.needs.datapaths_here", lambda: pytest.fail("asked"))
    assert main(["validate", "hello.yaml", "--set", "datapath=kernel"]) == 0
    done = testbed.run("hello", engine="flow", datapath="kernel", overrides=["measure.iterations=1"], out=tmp_path)
    assert testbed.load(done.directory).manifest["datapaths"] == {}
    assert "datapath_reason" not in testbed.load(done.directory).records["crux"].environment


@pytest.mark.usefixtures("without_nftables")
def test_a_plan_names_the_datapath_of_a_run_here_and_what_the_machine_lacks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["plan", "hello.yaml"]) == 0
    assert "\ndatapath: userspace (the best here; not kernel: no module; not nftables: not installed)\n" in (
        capsys.readouterr().out
    )
    assert main(["plan", "hello.yaml", "--datapath", "nftables"]) == 0
    assert "\ndatapath: nftables (asked for by name; this machine lacks it: not installed)\n" in (
        capsys.readouterr().out
    )


@pytest.mark.usefixtures("with_nftables")
def test_a_plan_names_the_schedulers_where_their_datapaths_differ(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "hello.yaml", "--scheduler", "ecmp-switch", "--scheduler", "crux"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("datapath")]
    assert [line.partition(" (")[0] for line in lines] == [
        "datapath of ecmp-switch: userspace",
        "datapath of crux: nftables",
    ]


@pytest.mark.usefixtures("without_nftables")
def test_a_sweep_over_what_the_machine_lacks_is_refused_before_it_begins() -> None:
    with pytest.raises(CannotRunError, match=r"^datapath nftables cannot be had here: not installed; "):
        checking.resolve_and_scale("hello", ["datapath=nftables"], None)


def test_points_of_a_sweep_that_names_no_datapath_are_the_same_on_every_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = []
    for missing in (NO_KERNEL, USERSPACE_ONLY):
        monkeypatch.setattr("testbed.needs.datapaths_here", lambda missing=missing: missing)
        found.append(checking.resolve_and_scale("hello", [], None))
    assert found[0] == found[1] != checking.resolve("hello", ["datapath=userspace"], None)


class SilentEngine:
    """Sends nothing and records nothing."""

    name = "emulation"

    def check(self) -> None:
        """Everything is there."""

    @contextmanager
    def alone(self) -> Iterator[None]:
        yield

    def run(
        self,
        experiment: Experiment,
        directory: Path,
        progress: Callable[[dict[str, Any]], None],
        search: ScaleSearch,
    ) -> RunRecord:
        environment: dict[str, object] = {"datapath": experiment.datapath}
        return RunRecord(experiment.scheduler, self.name, 1.0, {}, (), (), (), environment=environment)


@pytest.mark.usefixtures("with_nftables")
def test_the_manifest_and_each_run_say_which_datapath_and_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbed.api.create_engine", lambda name: SilentEngine())
    monkeypatch.setattr("testbed.api.summarise", lambda experiment, records: {"runs": []})
    monkeypatch.setattr("testbed.api.html.write", lambda directory, *run: None)
    done = testbed.run("hello", schedulers=["ecmp-switch", "crux"], overrides=["checks=[]"], out=tmp_path)
    manifest = json.loads((done.directory / "manifest.json").read_text("utf-8"))
    crux = {"datapath": "nftables", "reason": "the best here; not kernel: no module"}
    assert manifest["datapaths"]["crux"] == crux
    assert manifest["datapaths"]["ecmp-switch"]["datapath"] == "userspace"
    environment = RunDirectory.open(done.directory).read_record("crux").environment
    assert environment == {"datapath": crux["datapath"], "datapath_reason": crux["reason"]}
    assert "datapath" not in json.loads((done.directory / "experiment.json").read_text("utf-8"))


@pytest.mark.usefixtures("with_nftables")
def test_a_scenario_of_a_finished_run_names_the_datapath_only_if_it_was_asked_for() -> None:
    assert "datapath" not in prepare("hello").scenario.resolved_yaml()
    assert "\ndatapath: userspace\n" in prepare("hello", datapath="userspace").scenario.resolved_yaml()
