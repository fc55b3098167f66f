"""Decisions per communication step: asked for at the first host to begin and the last to end, only changes are told."""

from __future__ import annotations

from typing import ClassVar, Literal

import pytest

from controller.decision import JOB_EVENTS, STEP_EVENTS, ClusterView, Decision, Event, Scheduler, StepEnded, StepStarted
from testbed.api import prepare
from testbed.engines.common.mark_log import MarkLog
from testbed.engines.common.step_coordinator import StepCoordinator
from topologies.shaping import tos_of_level
from workloads.iteration.protocol import HostStep, ShapeFlows

EXPERIMENT = prepare("hello", overrides=["scale={bandwidth: 8000, time: 2}"]).experiments[0]
BIG, SMALL = (job.name for job in EXPERIMENT.jobs)


class FirstCome(Scheduler):
    """Jobs in the order in which their steps began; half of 200 Gbit/s each."""

    name: ClassVar[str] = "first-come"
    summary: ClassVar[str] = ""
    events = JOB_EVENTS | STEP_EVENTS

    def __init__(self) -> None:
        self.seen: list[tuple[Event, ClusterView]] = []

    def decide(self, view: ClusterView, event: Event) -> Decision:
        self.seen.append((event, view))
        flows = [flow for name in view.steps for flow in view.jobs[name].flows]
        return Decision(
            levels={name: rank for rank, name in enumerate(view.steps)},
            rates={flow.id: 100e9 for flow in flows},
            sender_marked=True,
        )


class Steps:
    """A coordinator on the hello scenario, and what it told the hosts."""

    def __init__(self) -> None:
        self.scheduler = FirstCome()
        self.told: list[tuple[str, ShapeFlows]] = []
        self.coordinator = StepCoordinator(
            EXPERIMENT, self.scheduler, lambda host, command: self.told.append((host, command)), MarkLog()
        )
        self.coordinator.set_jobs({job.name: job for job in EXPERIMENT.jobs})

    def hear(
        self, host: str, job: str, what: Literal["begin", "end"], at: float, iteration: int = 0
    ) -> list[tuple[str, ShapeFlows]]:
        before = len(self.told)
        self.coordinator.on_step(host, HostStep(job, what, iteration, 0, at))
        return self.told[before:]


@pytest.fixture
def steps() -> Steps:
    return Steps()


def test_a_scheduler_that_hears_no_steps_needs_no_coordinator() -> None:
    class Deaf(Scheduler):
        name: ClassVar[str] = "deaf"
        summary: ClassVar[str] = ""

        def decide(self, view: ClusterView, event: Event) -> Decision:
            return Decision()

    assert not StepCoordinator.wanted(Deaf()) and StepCoordinator.wanted(FirstCome())


def test_a_step_begins_with_its_first_host_and_ends_with_its_last(steps: Steps) -> None:
    steps.hear("h0", BIG, "begin", 1.0)
    assert steps.hear("h1", BIG, "begin", 1.1) == []
    assert steps.hear("h0", BIG, "end", 2.0) == []
    steps.hear("h1", BIG, "end", 2.1)
    assert [event for event, _ in steps.scheduler.seen] == [StepStarted(BIG, 0), StepEnded(BIG, 0)]


def test_both_ends_are_told_the_level_of_the_job_and_senders_the_rate(steps: Steps) -> None:
    told = dict(steps.hear("h0", SMALL, "begin", 1.0))
    assert told.keys() == {"h0", "h1"}
    assert {command.job_tos[SMALL] for command in told.values()} == {tos_of_level(0)}
    rates = {flow: rate for command in told.values() for flow, rate in command.rates.items()}
    small = EXPERIMENT.jobs[1]
    assert rates == {flow.id: pytest.approx(100e9 / 8000 / 8) for flow in small.flows}


def test_what_stays_as_it_is_is_not_told_again(steps: Steps) -> None:
    steps.hear("h0", BIG, "begin", 1.0)
    told = steps.hear("h0", SMALL, "begin", 1.1)
    assert all(BIG not in command.job_tos for _, command in told)


def test_bytes_left_are_what_the_rates_in_force_have_not_sent(steps: Steps) -> None:
    steps.hear("h0", BIG, "begin", 1.0)
    steps.hear("h0", SMALL, "begin", 1.1)
    _, view = steps.scheduler.seen[-1]
    flow = EXPERIMENT.jobs[0].flows[0]
    assert view.steps[BIG].remaining[flow.id] == pytest.approx(flow.bytes - 100e9 / 8 * 0.1 / EXPERIMENT.scale.time)


def test_a_job_that_has_left_is_forgotten(steps: Steps) -> None:
    steps.hear("h0", BIG, "begin", 1.0)
    steps.coordinator.set_jobs({SMALL: EXPERIMENT.jobs[1]})
    assert steps.hear("h0", BIG, "end", 2.0) == []
    steps.hear("h0", SMALL, "begin", 3.0)
    assert set(steps.scheduler.seen[-1][1].steps) == {SMALL}
