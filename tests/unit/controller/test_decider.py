"""What a scheduler is told after each event."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pytest

from controller.dataplane.planner import ControllerState, SchedulerFailedError
from controller.decider import (
    Decider,
    as_decided,
    with_answer,
    with_hashed_paths,
    with_job,
    with_profile,
    without_job,
)
from controller.decision import ClusterView, Decision, Event, JobArrived, JobDeparted, Measured, Scheduler
from controller.ecmp_hash import ecmp_path
from controller.schedulers.registry import create
from tests.unit.controller.conftest import ring, small

FABRIC = small()
A, B = ring("a", FABRIC, [0, 2]), ring("b", FABRIC, [1, 3], first_port=21000)
EMPTY = ClusterView(FABRIC, {})
PROFILE = Measured(flops=1.0, communication_s=1.0, iteration_s=2.0)


def test_jobs_stand_in_order_of_arrival_and_the_view_before_stays_as_it_was() -> None:
    crux = create("crux")
    first = with_job(EMPTY, A, crux)
    assert list(with_job(first, B, crux).jobs) == ["a", "b"]
    assert (list(first.jobs), list(EMPTY.jobs)) == (["a"], [])


@pytest.mark.parametrize(("options", "profiled"), [({}, set()), ({"profile": "measured"}, {"a"})])
def test_only_who_wants_profiles_has_jobs_profiled(options: dict[str, object], profiled: set[str]) -> None:
    assert with_job(EMPTY, A, create("crux", options)).profiling == profiled


def test_a_job_that_leaves_takes_along_all_that_was_known_of_it() -> None:
    crux = create("crux", {"profile": "measured"})
    both = replace(with_job(with_job(EMPTY, A, crux), B, crux), throughput={"a": 0.5, "b": 1.0})
    known = with_profile(both, "a", PROFILE)
    assert (known.profiling, dict(known.measured)) == ({"b"}, {"a": PROFILE})
    left = without_job(known, "a")
    assert (list(left.jobs), dict(left.measured), left.profiling, dict(left.throughput)) == (
        ["b"],
        {},
        {"b"},
        {"b": 1.0},
    )


def test_an_answer_has_a_path_for_every_flow() -> None:
    view = with_job(EMPTY, A, create("fixed"))
    answered = with_answer(view, create("fixed"), JobArrived("a"))
    assert answered.decision.paths.keys() == {flow.id for flow in A.flows}
    assert not view.decision.paths


class Recording(Scheduler):
    """Decides levels in order of arrival; keeps what it was told. With ``broken`` it raises."""

    name: ClassVar[str] = "recording"
    summary: ClassVar[str] = "for tests"

    def __init__(self) -> None:
        self.told: list[tuple[ClusterView, Event]] = []
        self.broken = False

    def decide(self, view: ClusterView, event: Event) -> Decision:
        self.told.append((view, event))
        if self.broken:
            raise ValueError("out of ideas")
        return Decision(levels={name: level for level, name in enumerate(view.jobs)})


def test_the_decider_tells_the_scheduler_its_last_decision_and_throughput() -> None:
    scheduler = Recording()
    decider = Decider(FABRIC, scheduler, levels=4, seed=3)
    first = decider.arrive(A)
    assert decider.take_throughput({"a": 0.5, "gone": 1.0}) == {"a": 0.5}
    decider.arrive(B)
    view, event = scheduler.told[-1]
    assert (view.decision, dict(view.throughput), event) == (first, {"a": 0.5}, JobArrived("b"))
    assert (view.level_count, view.seed, view.fabric) == (4, 3, FABRIC)
    decider.depart("a")
    view, event = scheduler.told[-1]
    assert (list(view.jobs), dict(view.throughput), event) == (["b"], {}, JobDeparted("a"))
    assert decider.view.decision is decider.decision


def test_a_scheduler_that_raises_leaves_the_view_as_it_was() -> None:
    scheduler = Recording()
    decider = Decider(FABRIC, scheduler)
    decider.arrive(A)
    before, scheduler.broken = decider.view, True
    for ask in (
        lambda: decider.arrive(B),
        lambda: decider.depart("a"),
        lambda: decider.profiled("a", PROFILE),
        lambda: decider.jobs_changed({}, JobDeparted("a"), steps={}, time_s=1.0),
    ):
        with pytest.raises(ValueError, match="out of ideas"):
            ask()
        assert decider.view is before


class Impossible(Recording):
    """Once ``broken``, decides a level that there is not."""

    def decide(self, view: ClusterView, event: Event) -> Decision:
        return Decision(levels=dict.fromkeys(view.jobs, 99 if self.broken else 0))


@pytest.mark.parametrize("scheduler", [Recording(), Impossible()])
def test_a_decision_without_rules_leaves_the_controller_as_it_was(scheduler: Recording) -> None:
    state = ControllerState(FABRIC, scheduler)
    state.arrive(A)
    before = (dict(state.jobs), state.decision, state.pending, state.data_rules(), state.rules_on("tor0"))
    scheduler.broken = True
    with pytest.raises(SchedulerFailedError):
        state.arrive(B)
    with pytest.raises(SchedulerFailedError):
        state.profiled("a", PROFILE)
    assert (dict(state.jobs), state.decision, state.pending, state.data_rules(), state.rules_on("tor0")) == before
    scheduler.broken = False
    assert list(state.arrive(B).decision.levels) == ["a", "b"]


def test_without_switches_the_seeded_hash_stands_in_for_theirs() -> None:
    scheduler = create("ecmp-switch")
    kept = Decider(FABRIC, scheduler).arrive(A)
    assert kept.hashed == tuple(flow.id for flow in A.flows)
    filled = Decider(FABRIC, scheduler, seed=5, complete=with_hashed_paths).arrive(A)
    assert (filled.hashed, dict(filled.paths)) == ((), {flow.id: ecmp_path(FABRIC, flow, 5) for flow in A.flows})


def test_a_replay_gets_the_decision_as_it_is_and_replaces_all_jobs_at_once() -> None:
    scheduler = Recording()
    decider = Decider(FABRIC, scheduler, complete=as_decided)
    decision = decider.jobs_changed({"a": A, "b": B}, JobArrived("b"), steps={}, time_s=7.0)
    assert (dict(decision.paths), dict(decision.levels)) == ({}, {"a": 0, "b": 1})
    assert (list(decider.view.jobs), decider.view.time_s, len(scheduler.told)) == (["a", "b"], 7.0, 1)
