"""All schedulers of a run have the scale that the first one's rehearsal chose, or one step down if that is too much."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from testbed.all_runs import AllRuns
from testbed.api import prepare
from testbed.experiment.demand import peak_demand
from testbed.experiment.experiment import Experiment, Scale
from testbed.experiment.scale import step_down
from testbed.experiment.scale_search import AS_GIVEN, ScaleSearch, TooBusyError
from testbed.one_scale import MOST_STEPS_DOWN, OneScale
from testbed.progress import Progress
from testbed.results.record import RunRecord
from testbed.results.run_directory import RunDirectory

PREPARED = prepare("hello", overrides=["checks=[]"])
DEMANDS = (peak_demand(PREPARED.fabric, PREPARED.jobs),)
MEASURED = Scale(1500.0, 1.0, 9000)
EVIDENCE = {"disturbed": "", "steps": []}


class Machine:
    """An engine on a machine that carries rates / ``carries`` and rehearses ``MEASURED``."""

    name = "emulation"

    def __init__(self, carries: float) -> None:
        self.carries = carries
        self.ran: list[tuple[str, float, bool]] = []

    def run(
        self,
        experiment: Experiment,
        directory: Path,
        progress: Callable[[dict[str, Any]], None],
        search: ScaleSearch = AS_GIVEN,
    ) -> RunRecord:
        rehearsed = bool(search.demands)
        scale = MEASURED if rehearsed else experiment.scale
        self.ran.append((experiment.scheduler.label, scale.bandwidth, rehearsed))
        environment = {"scale": asdict(scale), **({"rehearsal": EVIDENCE} if rehearsed else {})}
        if search.noticing and scale.bandwidth < self.carries:
            raise TooBusyError(0.2, environment)
        return RunRecord(
            choice=experiment.scheduler,
            engine="emulation",
            duration_s=1.0,
            windows={},
            iterations=(),
            links=(),
            decisions=(),
            environment=dict(environment),
        )


def run_all(machine: Machine, folder: Path, *, demands: Any = DEMANDS) -> tuple[OneScale, Experiment, list[RunRecord]]:
    said: list[str] = []
    runs = OneScale(machine, demands, said.append)  # type: ignore[arg-type]
    with Progress(quiet=True) as progress, RunDirectory.create(folder, "hello") as directory:
        every = AllRuns(runs, PREPARED.experiments, PREPARED.jobs, {}, progress, None)
        first, records = every.run(directory)
    return runs, first, records


def test_only_the_first_run_rehearses_and_all_have_its_scale(tmp_path: Path) -> None:
    machine = Machine(carries=1000.0)
    runs, first, records = run_all(machine, tmp_path)
    assert machine.ran == [("ecmp", 1500.0, True), ("crux", 1500.0, False)]
    assert first.scale == MEASURED
    assert [record.scheduler for record in records] == ["ecmp", "crux"]
    assert runs.evidence == {"rehearsal": EVIDENCE}


def test_a_given_scale_is_neither_rehearsed_nor_changed(tmp_path: Path) -> None:
    machine = Machine(carries=1e9)
    _, first, _ = run_all(machine, tmp_path, demands=())
    given = PREPARED.experiments[0].scale
    assert machine.ran == [("ecmp", given.bandwidth, False), ("crux", given.bandwidth, False)]
    assert first.scale == given


def test_a_run_that_is_too_busy_makes_all_begin_again_one_step_down(tmp_path: Path) -> None:
    down = step_down(PREPARED.jobs, MEASURED)
    machine = Machine(carries=down.bandwidth)
    runs, first, _ = run_all(machine, tmp_path)
    assert machine.ran == [("ecmp", 1500.0, True), ("ecmp", down.bandwidth, False), ("crux", down.bandwidth, False)]
    assert first.scale == down
    assert runs.evidence["steps_down"] == [{"idle": 0.2, **asdict(MEASURED)}]


def test_after_two_steps_down_a_run_goes_to_its_end(tmp_path: Path) -> None:
    machine = Machine(carries=1e9)
    runs, first, _ = run_all(machine, tmp_path)
    assert runs.steps_down == MOST_STEPS_DOWN
    assert first.scale == step_down(PREPARED.jobs, step_down(PREPARED.jobs, MEASURED))
    assert [label for label, _, _ in machine.ran] == ["ecmp", "ecmp", "ecmp", "crux"]


def test_the_datapath_that_carries_least_is_rehearsed(tmp_path: Path) -> None:
    machine = Machine(carries=0.0)
    ecmp, crux = PREPARED.experiments
    mixed = (replace(ecmp, datapath="nftables"), replace(crux, datapath="userspace"))
    runs = OneScale(machine, DEMANDS, lambda line: None)  # type: ignore[arg-type]
    with Progress(quiet=True) as progress, RunDirectory.create(tmp_path, "hello") as directory:
        _, records = AllRuns(runs, mixed, PREPARED.jobs, {}, progress, None).run(directory)
    assert machine.ran == [("crux", 1500.0, True), ("ecmp", 1500.0, False)]
    assert [record.scheduler for record in records] == ["ecmp", "crux"]


def test_what_disturbed_a_rehearsal_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EVIDENCE, "disturbed", "other processes took up to 50% of the CPU")
    said: list[str] = []
    runs = OneScale(Machine(carries=0.0), DEMANDS, said.append)  # type: ignore[arg-type]
    runs.run(PREPARED.experiments[0], tmp_path, lambda message: None)
    assert said == ["other processes took up to 50% of the CPU"]
