"""Plug-ins in a process of their own decide as in the run's, and what goes wrong there is one line here."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from controller.decision import ClusterView, Scheduler, Step, StepEnded, StepStarted
from controller.schedulers.registry import create
from testbed.api import prepare
from testbed.engines.common.managed_jobs import JobsUnderManager, ManagedJobs
from testbed.engines.emulation.foreign_plugins import plugin_process
from testbed.engines.emulation.foreign_plugins.stand_ins import (
    ManagedJobsStandIn,
    SchedulerStandIn,
    managed_jobs_of,
    scheduler_of,
)
from testbed.errors import RunFailedError
from testbed.experiment.experiment import Experiment
from testbed.experiment.scheduler_choice import SchedulerChoice

RAISING = """
class Raises:
    name = "raises"
    summary = "raises at every step"
    def __init__(self):
        from controller.decision import STEP_EVENTS
        self.events = STEP_EVENTS
        print("what a plug-in prints is no answer")
    def decide(self, view, event):
        raise ZeroDivisionError("no remaining\\nbytes of " + event.job)
"""


@pytest.fixture
def hello() -> Experiment:
    return prepare("hello", engine="flow").experiments[0]


@pytest.fixture
def raising(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another package with the scheduler ``raises``."""
    metadata = tmp_path / "raising-1.0.dist-info"
    metadata.mkdir()
    (tmp_path / "raising.py").write_text(RAISING, "utf-8")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: raising\nVersion: 1.0\n", "utf-8")
    (metadata / "entry_points.txt").write_text("[testbed.schedulers]\nraises = raising:Raises\n", "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def views(experiment: Experiment) -> Iterator[tuple[ClusterView, StepStarted | StepEnded]]:
    """A step of each job begins, then those of the first end."""
    jobs = {job.name: job for job in experiment.jobs}
    steps: dict[str, Step] = {}
    for now, job in enumerate(experiment.jobs):
        remaining = {flow.id: 1e9 * (now + 1) for flow in job.flows}
        steps = {**steps, job.name: Step(job.name, 0, float(now), remaining)}
        yield ClusterView(experiment.fabric, jobs, steps=steps, time_s=float(now)), StepStarted(job.name, 0)
    first = experiment.jobs[0].name
    left = {name: step for name, step in steps.items() if name != first}
    yield ClusterView(experiment.fabric, jobs, steps=left, time_s=9.0), StepEnded(first, 0)


@pytest.mark.parametrize("name", ["varys", "sincronia", "varys-priority"])
def test_a_scheduler_decides_the_same_in_a_process_of_its_own(hello: Experiment, name: str) -> None:
    own: Scheduler = create(name, {}, hello.seed)
    stand_in = SchedulerStandIn(replace(hello, scheduler=SchedulerChoice(name)))
    assert stand_in.events == own.events
    decision = None
    for view, event in views(hello):
        before = view if decision is None else replace(view, decision=decision)
        decision = own.decide(before, event)
        assert stand_in.decide(view, event) == decision
    stand_in.close()


def test_a_manager_decides_the_same_in_a_process_of_its_own() -> None:
    experiment = prepare("arrivals", engine="flow").experiments[0]
    assert experiment.managed is not None
    own, stand_in = ManagedJobs(experiment.managed, experiment.fabric, experiment.seed), ManagedJobsStandIn(experiment)
    assert lives_of(stand_in) == lives_of(own)
    stand_in.close()


def lives_of(jobs: JobsUnderManager) -> list[object]:
    """What happens to the jobs when each stint that runs has ended a little later."""
    seen: list[object] = [jobs.total]
    now, running = 0.0, list[str]()
    made: Callable[[str], int] = {}.get  # type: ignore[assignment]
    for _ in range(100):
        changes = jobs.decide(now, lambda stint: made(stint) or 0)
        running = [name for name in running if name not in changes.stopped] + [job.name for job in changes.started]
        seen += [changes, jobs.unfinished, jobs.next_s(), dict(jobs.refused)]
        if not jobs.unfinished:
            break
        now += 10.0
        if running:
            jobs.ended(running.pop(0), now)
    assert not jobs.unfinished
    return [*seen, jobs.outcomes(now), jobs.stints_of(), jobs.stints]


def test_parts_of_the_testbed_itself_are_called_in_place(hello: Experiment) -> None:
    assert type(scheduler_of(hello)) is type(create(hello.scheduler.name))
    assert managed_jobs_of(hello) is None
    assert isinstance(managed_jobs_of(prepare("arrivals", engine="flow").experiments[0]), ManagedJobs)


def test_a_scheduler_of_another_package_that_raises_is_one_line(hello: Experiment, raising: None) -> None:
    scheduler = scheduler_of(replace(hello, scheduler=SchedulerChoice("raises")))
    assert isinstance(scheduler, SchedulerStandIn) and scheduler.events == {StepStarted, StepEnded}
    view, event = next(views(hello))
    with pytest.raises(RunFailedError) as caught:
        scheduler.decide(view, event)
    line = f"raising.py:10: scheduler raises raised ZeroDivisionError: no remaining bytes of {event.job}"
    assert str(caught.value).endswith(f"/{line}")
    scheduler.close()


def test_a_plugin_process_that_has_ended_is_one_line(hello: Experiment) -> None:
    scheduler = SchedulerStandIn(replace(hello, scheduler=SchedulerChoice("varys")))
    scheduler.close()
    with pytest.raises((RunFailedError, ValueError)):
        scheduler.decide(*next(views(hello)))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has privileges to do without")
def test_a_plugin_process_has_no_privileges(hello: Experiment) -> None:
    scheduler = SchedulerStandIn(replace(hello, scheduler=SchedulerChoice("varys")))
    lines = Path(f"/proc/{scheduler._process.pid}/status").read_text().splitlines()
    fields = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    user = plugin_process.plain_user()
    assert fields["Uid"][1] == str(0 if user is None else user.uid)
    assert {int(fields[name][0], 16) for name in ("CapPrm", "CapEff", "CapBnd")} == {0}
    assert fields["NoNewPrivs"] == ["1"]
    scheduler.close()
