"""``testbed run`` when something goes wrong, with an engine that sends nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.api import prepare, without_packets
from testbed.cli.main import main
from testbed.errors import CannotRunError, RunFailedError
from testbed.experiment.experiment import Experiment
from testbed.experiment.scale_search import ScaleSearch
from testbed.results.record import RunRecord
from topologies.datapath import Datapath
from workloads.external import ExternalCommand


class FailingEngine:
    """Fails at one of its steps: ``check``, ``alone`` or the run of the scheduler ``crux``."""

    name = "emulation"

    def __init__(self, step: str) -> None:
        self._step = step
        self.held = False
        self.ran: list[tuple[str, bool]] = []
        self.datapaths: list[Datapath] = []

    def check(self) -> None:
        if self._step == "check":
            raise CannotRunError("emulation needs root: run with sudo")

    @contextmanager
    def alone(self) -> Iterator[None]:
        if self._step == "alone":
            raise CannotRunError("another emulation is running")
        self.held = True
        yield
        self.held = False

    def run(
        self,
        experiment: Experiment,
        directory: Path,
        progress: Callable[[dict[str, Any]], None],
        search: ScaleSearch,
    ) -> RunRecord:
        self.ran.append((experiment.scheduler.label, self.held))
        self.datapaths.append(experiment.datapath)
        if experiment.scheduler.label == "crux":
            raise RunFailedError("host h1 did not report 'connected' for big")
        return RunRecord(experiment.scheduler, self.name, 1.0, {}, (), (), ())


def run(
    step: str, out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *options: str
) -> tuple[FailingEngine, int, list[str]]:
    """Status, and what was said on standard error after the progress."""
    engine = FailingEngine(step)
    monkeypatch.setattr("testbed.api.create_engine", lambda name: engine)
    status = main(["run", "hello.yaml", "--out", str(out), *options])
    said = capsys.readouterr()
    assert said.out == ""
    return engine, status, said.err.splitlines()


@pytest.mark.parametrize(
    ("step", "line"),
    [
        (
            "check",
            "'testbed run hello.yaml --engine flow' works here (it sends no packets); with packets: "
            "emulation needs root: run with sudo",
        ),
        ("alone", "another emulation is running"),
    ],
)
def test_a_machine_that_cannot_run_it_is_one_line_and_nothing_is_left(
    step: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine, status, said = run(step, tmp_path / "runs", monkeypatch, capsys)
    assert (status, said) == (3, [line])
    assert engine.ran == [] and not (tmp_path / "runs").exists()


def test_what_works_at_once_comes_first_unless_there_are_real_programs(tmp_path: Path) -> None:
    prepared = prepare("hello")
    assert without_packets("my file.yaml", prepared.jobs).startswith("'testbed run 'my file.yaml' --engine flow' works")
    program = ExternalCommand(("./train.sh",))
    assert without_packets("hello", [replace(prepared.jobs[0], external=program)]) == ""


def test_a_place_that_is_a_file_is_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    engine, status, said = run("", tmp_path / "file", monkeypatch, capsys)
    line = f"{tmp_path}/file: cannot make a run directory: File exists, expected a directory to write to"
    assert (status, said, engine.ran) == (2, [line], [])


def test_a_run_that_fails_is_one_line_and_its_directory_stays_marked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, status, said = run("crux", tmp_path, monkeypatch, capsys)
    assert (status, said[-1]) == (1, "host h1 did not report 'connected' for big")
    (directory,) = tmp_path.iterdir()
    assert (directory / "UNFINISHED").exists()
    assert (directory / "ecmp" / "iterations.csv").exists()


def test_the_machine_is_held_from_the_first_scheduler_to_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine, _, _ = run("crux", tmp_path, monkeypatch, capsys)
    assert engine.ran == [("ecmp", True), ("crux", True)]


LACKS: dict[Datapath, str] = {
    "kernel": "the kernel module openvswitch is not in this kernel",
    "nftables": "this Python has no module nftables ('make setup' installs it)",
    "userspace": "",
}
HAS_NFTABLES: dict[Datapath, str] = {**LACKS, "nftables": ""}


@pytest.mark.parametrize("options", [["--datapath", "nftables"], ["--set", "datapath=nftables"]])
def test_a_datapath_that_the_machine_lacks_is_one_line_that_says_what_would_do(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("testbed.needs.datapaths_here", lambda: LACKS)
    engine, status, said = run("", tmp_path / "runs", monkeypatch, capsys, *options)
    line = (
        "datapath nftables cannot be had here: this Python has no module nftables ('make setup' installs it); "
        "--datapath userspace would do"
    )
    assert (status, said) == (3, [line])
    assert engine.ran == [] and not (tmp_path / "runs").exists()


def test_a_datapath_that_cannot_hash_is_refused_for_a_scheduler_whose_switches_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("testbed.needs.datapaths_here", lambda: HAS_NFTABLES)
    options = ("--scheduler", "ecmp-switch", "--datapath", "nftables")
    engine, status, said = run("", tmp_path, monkeypatch, capsys, *options)
    line = (
        "--set datapath=nftables: ecmp-switch: its switches hash flows, which the datapath nftables cannot, "
        "expected one of kernel, userspace"
    )
    assert (status, said, engine.ran) == (2, [line], [])


def test_the_option_wins_over_the_scenario_and_the_default_is_the_best_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("testbed.needs.datapaths_here", lambda: HAS_NFTABLES)
    engine, _, _ = run("", tmp_path, monkeypatch, capsys)
    assert engine.datapaths == ["nftables", "nftables"]
    engine, _, _ = run("", tmp_path, monkeypatch, capsys, "--set", "datapath=nftables", "--datapath", "userspace")
    assert engine.datapaths == ["userspace", "userspace"]


@pytest.mark.parametrize(
    ("arguments", "status", "line"),
    [
        (["--engine", "flw"], 2, "testbed run: argument --engine: invalid choice: 'flw'"),
        (["--repeat", "0"], 2, "testbed run: argument --repeat: '0' is not a whole number from 1"),
        (["--set", "seed"], 2, "--set seed: no key or no value, expected KEY=VALUE such as seed=2"),
        (["--scheduler", "cruks"], 2, "--set schedulers=[cruks]: unknown scheduler 'cruks', did you mean 'crux'?"),
        (["--datapath", "nft"], 2, "testbed run: argument --datapath: invalid choice: 'nft', did you mean 'nftables'?"),
        (["--set", "datapath=nft"], 2, "--set datapath=nft: datapath is 'nft', expected kernel, nftables or userspace"),
        (["--seed", "-1"], 2, "--set seed=-1: seed is -1, expected at least 0"),
    ],
)
def test_a_wrong_option_is_one_line(
    arguments: list[str], status: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "hello.yaml", *arguments]) == status
    said = capsys.readouterr().err
    assert said.startswith(line) and said.count("\n") == 1
