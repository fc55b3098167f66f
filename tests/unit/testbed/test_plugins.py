"""The one module that plug-ins import."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import pytest

from controller.decision import as_scheduler
from testbed import plugins
from topologies.clos import clos96
from workloads.build import JobSpec, build_jobs
from workloads.managers.jobs import Waiting


class Plain:
    """All that a scheduler must have."""

    name = "plain"

    def __init__(self) -> None:
        self.asked = 0

    def decide(self, view: plugins.ClusterView, event: plugins.Event) -> plugins.Decision:
        self.asked += 1
        return plugins.Decision(levels={"a": 0})


class ForSteps(Plain):
    events = [plugins.StepStarted]  # noqa: RUF012
    decides = ("levels",)
    source = "a paper"
    alone = True


@pytest.fixture
def view() -> plugins.ClusterView:
    fabric = clos96()
    jobs = build_jobs([JobSpec("a", "bert", gpus=8), JobSpec("b", "bert", gpus=8)], fabric, seed=1)
    return plugins.ClusterView(fabric, {job.name: job for job in jobs})


def test_everything_it_offers_is_there_and_in_order() -> None:
    assert len(plugins.__all__) == len(set(plugins.__all__))
    assert [name for name in plugins.__all__ if not hasattr(plugins, name)] == []


def test_the_scheduler_that_it_shows_decides(view: plugins.ClusterView) -> None:
    shown = re.search(r"^    from testbed.*?(?=^\S)", plugins.__doc__ or "", re.MULTILINE | re.DOTALL)
    assert shown
    names: dict[str, Any] = {}
    exec(textwrap.dedent(shown.group(0)), names)
    made = names["ArrivalOrder"]()
    assert made.decide(view, plugins.JobArrived("b")).levels == {"a": 0, "b": 1}
    assert (made.events, made.source, made.alone) == (plugins.JOB_EVENTS, "", False)


def test_a_scheduler_that_does_not_inherit_has_the_defaults_of_what_it_does_not_say(view: plugins.ClusterView) -> None:
    plain = Plain()
    scheduler = as_scheduler(plain)
    assert isinstance(scheduler, plugins.Scheduler)
    assert (scheduler.name, scheduler.summary, scheduler.events) == ("plain", "", plugins.JOB_EVENTS)
    assert (scheduler.decides, scheduler.source, scheduler.alone) == ((), "", False)
    assert scheduler.decide(view, plugins.JobArrived("b")).levels == {"a": 0}
    assert (plain.asked, scheduler.asked) == (1, 1)  # type: ignore[attr-defined]


def test_what_it_says_is_kept() -> None:
    scheduler = as_scheduler(ForSteps())
    assert scheduler.events == {plugins.StepStarted}
    assert (scheduler.decides, scheduler.source, scheduler.alone) == (("levels",), "a paper", True)


def test_a_scheduler_that_inherits_stays_what_it_is() -> None:
    class Own(plugins.Scheduler):
        name = "own"

        def decide(self, view: plugins.ClusterView, event: plugins.Event) -> plugins.Decision:
            return plugins.Decision()

    own = Own()
    assert as_scheduler(own) is own


def test_a_placer_needs_nothing_else() -> None:
    class Last(plugins.Placer):
        name = "last"
        summary = "the last free GPUs"

        def place(self, state: plugins.ClusterState, job: Waiting, gpus: int) -> plugins.Placement | None:
            free = [gpu for host in state.structure.hosts for gpu in state.free_on(host)]
            return plugins.Placement(tuple(free[-gpus:])) if len(free) >= gpus else None

    state = plugins.empty_cluster(clos96())
    assert Last().place(state, Waiting("a", 2), 2) == plugins.Placement(("h11g6", "h11g7"))
