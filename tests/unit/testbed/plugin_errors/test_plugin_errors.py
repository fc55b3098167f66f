"""A wrong plug-in ends a command with one line: the plug-in, its file and line, what is wrong, what was expected.

``faulty.py`` has the plug-ins, ``expected.txt`` an exit status and a line for each.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from controller.dataplane.fake_network import MemoryNetwork
from controller.decision import ClusterView, Step, StepStarted
from controller.schedulers.registry import create
from controller.service.messages import JobRequest
from controller.service.service import RequestError, Service
from testbed.api import prepare
from testbed.cli.main import main
from testbed.engines.emulation.foreign_plugins.stand_ins import ManagedJobsStandIn, scheduler_of
from testbed.engines.replay.inputs import TraceJobs
from testbed.engines.replay.manager_adapter import ManagedPlacing
from testbed.engines.replay.replay import Replay
from testbed.engines.replay.running_job import ReplayRequest
from testbed.errors import RunFailedError
from testbed.experiment.scheduler_choice import SchedulerChoice
from topologies.clos import clos
from workloads.managers.registry import manager

HERE = Path(__file__).parent
ROOT = HERE.parents[3]
FABRIC = clos(hosts=4, gpus_per_host=4, nics_per_host=2, tors=2, aggregations=2, port_rate=100e9, fabric_rate=100e9)


def expected() -> dict[str, tuple[int, str]]:
    """``scheduler raises`` -> exit status and line, files without their folder."""
    lines = (HERE / "expected.txt").read_text("utf-8").splitlines()
    found = [re.fullmatch(r"(\w+ [\w-]+): (\d) (.*)", line) for line in lines]
    return {match[1]: (int(match[2]), match[3]) for match in found if match}


EXPECTED = expected()
SCHEDULERS = [name.split()[1] for name in EXPECTED if name.startswith("scheduler ")]
PARTS = [tuple(name.split()) for name in EXPECTED if name.split()[0] in ("queue", "policy", "placer")]
FABRICS = [name.split()[1] for name in EXPECTED if name.startswith("fabric ")]


def without_folder(text: str) -> str:
    return text.replace(f"{HERE}/", "")


@pytest.fixture
def said(faulty: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Runs a command; returns its exit status and the last line on standard error. Nothing else is an error there."""

    def run(*arguments: str) -> tuple[int, str]:
        status = main(arguments)
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err and printed.out == ""
        return status, without_folder(printed.err).splitlines()[-1]

    return run


def test_every_plugin_of_the_package_has_its_line(faulty: str) -> None:
    text = (Path(faulty.split(":")[1]) / "faulty-1.0.dist-info" / "entry_points.txt").read_text("utf-8")
    assert set(re.findall(r"^([\w-]+) = ", text, re.MULTILINE)) == {name.split()[1] for name in EXPECTED}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_scheduler_ends_a_run_of_the_flow_engine(
    said: Callable[..., tuple[int, str]], tmp_path: Path, name: str
) -> None:
    out = tmp_path / "runs"
    status, line = said("run", "hello", "--engine", "flow", "--scheduler", name, "--out", str(out))
    assert (status, line) == EXPECTED[f"scheduler {name}"]
    if status == 1:
        (log,) = out.glob(f"*/{name}/testbed.log")
        assert "Traceback" in log.read_text("utf-8") and "faulty.py" in log.read_text("utf-8")


@pytest.mark.parametrize("name", [name for name in SCHEDULERS if name != "at-steps"])
def test_a_scheduler_ends_a_plan_in_the_same_words(said: Callable[..., tuple[int, str]], name: str) -> None:
    assert said("plan", "hello", "--scheduler", name) == EXPECTED[f"scheduler {name}"]


@pytest.mark.parametrize(("point", "name"), PARTS)
def test_a_part_of_a_manager_ends_a_run_of_the_flow_engine(
    said: Callable[..., tuple[int, str]], tmp_path: Path, point: str, name: str
) -> None:
    chosen = f"manager={{{point}: {name}}}"
    found = said("run", "arrivals", "--engine", "flow", "--set", chosen, "--out", str(tmp_path / "runs"))
    assert found == EXPECTED[f"{point} {name}"]
    (log,) = tmp_path.glob("runs/*/*/testbed.log")
    assert "Traceback" in log.read_text("utf-8")


@pytest.mark.parametrize("kind", FABRICS)
def test_a_fabric_ends_a_command(faulty: str, kind: str) -> None:
    """In a process of its own: the kinds of fabric are found when the testbed starts."""
    command = [sys.executable, "-m", "testbed", "plan", "hello", "--set", f"fabric={{kind: {kind}, hosts: 2}}"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{faulty}"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, without_folder(done.stderr)) == (1, f"{EXPECTED[f'fabric {kind}'][1]}\n")


def requests() -> list[ReplayRequest]:
    return [ReplayRequest("big", 0.0, 400.0, 8, "crux-bert")]


def replay(scheduler: str, **parts: str) -> None:
    placing = ManagedPlacing(manager(**{"placer": "consolidated", **parts}), FABRIC, TraceJobs(FABRIC).stage_times)
    Replay(FABRIC, create(scheduler), placing, requests(), TraceJobs(FABRIC).build).run()


@pytest.mark.parametrize(
    ("scheduler", "parts", "line"),
    [
        ("raises", {}, EXPECTED["scheduler raises"][1]),
        ("level-too-low", {}, EXPECTED["scheduler level-too-low"][1]),
        ("crux", {"policy": "broken-policy"}, EXPECTED["policy broken-policy"][1]),
        ("crux", {"policy": "late-policy"}, EXPECTED["policy late-policy"][1]),
        ("crux", {"placer": "twice-placer"}, "twice-placer returned 1 different GPUs for job 'big', expected 8"),
    ],
)
def test_a_plugin_ends_a_replay(faulty: str, scheduler: str, parts: dict[str, str], line: str) -> None:
    with pytest.raises(RunFailedError) as caught:
        replay(scheduler, **parts)
    assert without_folder(str(caught.value)).endswith(line)


def test_the_controller_answers_a_request_with_the_line_and_keeps_what_it_had(faulty: str) -> None:
    service, experiment = Service(MemoryNetwork(), create("raises")), prepare("hello", engine="flow").experiments[0]
    service.put_fabric(experiment.fabric)
    with pytest.raises(RequestError) as caught:
        service.post_job(JobRequest(experiment.jobs[0]))
    assert (caught.value.status, without_folder(str(caught.value))) == (500, EXPECTED["scheduler raises"][1])
    assert service.get_state().jobs == ()


def in_its_process(faulty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", faulty)


def test_the_process_without_privileges_answers_with_the_line(faulty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    in_its_process(faulty, monkeypatch)
    experiment = prepare("hello", engine="flow").experiments[0]
    scheduler = scheduler_of(replace(experiment, scheduler=SchedulerChoice("at-steps")))
    job = experiment.jobs[0]
    step = Step(job.name, 0, 0.0, {flow.id: flow.bytes for flow in job.flows})
    view = ClusterView(experiment.fabric, {job.name: job}, steps={job.name: step})
    with pytest.raises(RunFailedError) as caught:
        scheduler.decide(view, StepStarted(job.name, 0))
    assert without_folder(str(caught.value)) == EXPECTED["scheduler at-steps"][1]
    scheduler.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize(("point", "name"), [("policy", "broken-policy"), ("placer", "taken-placer")])
def test_a_part_of_a_manager_in_that_process_does_so_too(
    faulty: str, monkeypatch: pytest.MonkeyPatch, point: str, name: str
) -> None:
    in_its_process(faulty, monkeypatch)
    overrides: Sequence[str] = [f"manager={{{point}: {name}}}"]
    jobs = ManagedJobsStandIn(prepare("arrivals", engine="flow", overrides=overrides).experiments[0])
    with pytest.raises(RunFailedError) as caught:
        jobs.decide(0.0, lambda _stint: 0)
    assert without_folder(str(caught.value)) == EXPECTED[f"{point} {name}"][1]
    jobs.close()
