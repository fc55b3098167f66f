"""What a scheduler is told after each event."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controller.decider import with_answer, with_job, with_profile, without_job
from controller.decision import ClusterView, JobArrived, Measured
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
