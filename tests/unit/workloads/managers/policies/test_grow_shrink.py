"""Gandiva's grow and shrink: idle GPUs of a host are lent to elastic jobs, and never in anybody's way."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.clos import clos
from workloads.managers.actions import Resize, Start
from workloads.managers.cluster_state import empty_cluster
from workloads.managers.durations import Play
from workloads.managers.interfaces import Ended, Submitted, Tick
from workloads.managers.jobs import Waiting
from workloads.managers.registry import manager

FABRIC = clos(hosts=2, gpus_per_host=4, nics_per_host=1, tors=1, aggregations=1, port_rate=1e9, fabric_rate=1e9)
EMPTY = empty_cluster(FABRIC)
GROWING = manager("consolidated", policy="grow-shrink")


def elastic(name: str, gpus: int, most: int) -> Waiting:
    return Waiting(name, gpus, 0.0, 100.0, remaining_s=100.0, min_gpus=gpus, max_gpus=most)


def test_a_job_grows_on_its_own_host_up_to_what_it_may_have() -> None:
    state = EMPTY.start(elastic("a", 2, 8), ("h0g0", "h0g1")).start(elastic("b", 1, 2), ("h1g0",))
    grown = GROWING.decide(state.at(60.0), [], Tick())
    assert [(each.job, each.gpus) for each in grown if isinstance(each, Resize)] == [
        ("a", ("h0g0", "h0g1", "h0g2", "h0g3")),
        ("b", ("h1g0", "h1g1")),
    ]


def test_a_job_that_did_not_ask_for_more_stays_as_it_is() -> None:
    state = EMPTY.start(Waiting("a", 2), ("h0g0", "h0g1"))
    assert GROWING.decide(state, [], Ended("b")) == ()


def test_whoever_grew_last_gives_back_first_and_only_what_is_needed() -> None:
    state = EMPTY.start(elastic("a", 2, 4), ("h0g0", "h0g1", "h0g2", "h0g3"))
    state = state.at(10.0).start(elastic("b", 2, 4), ("h1g0", "h1g1", "h1g2", "h1g3"))
    back, start = GROWING.decide(state, [Waiting("c", 2)], Submitted("c"))
    assert isinstance(back, Resize) and (back.job, back.gpus) == ("b", ("h1g0", "h1g1"))
    assert isinstance(start, Start) and start.gpus == ("h1g2", "h1g3")


def test_nobody_shrinks_for_a_job_that_would_not_fit_even_then() -> None:
    state = EMPTY.start(elastic("a", 2, 4), ("h0g0", "h0g1", "h0g2", "h0g3")).start(Waiting("b", 2), ("h1g0", "h1g1"))
    assert GROWING.decide(state, [Waiting("c", 6)], Submitted("c")) == ()


@st.composite
def traces(draw: st.DrawFn) -> list[Waiting]:
    jobs = draw(
        st.lists(
            st.tuples(st.integers(1, 4), st.integers(0, 4), st.integers(0, 300), st.integers(1, 300)),
            min_size=1,
            max_size=8,
        )
    )
    return [
        Waiting(f"j{number}", gpus, float(submit_s), float(runs_s), remaining_s=float(runs_s), max_gpus=gpus + more)
        for number, (gpus, more, submit_s, runs_s) in enumerate(jobs)
    ]


@given(trace=traces())
@settings(max_examples=60, deadline=None)
def test_every_job_ends_and_none_later_for_having_grown(trace: list[Waiting]) -> None:
    def makespan(policy: str, **options: object) -> float:
        who = manager("none", "fifo", policy, options={"policy": options})
        return max(played.end_s for played in Play(who, FABRIC, trace).run())

    assert makespan("grow-shrink", look_s=20.0, restart_s=0.0) <= makespan("gang") + 1e-6


@pytest.mark.parametrize("value", [0, "soon", True])
def test_a_wrong_time_to_look_is_named(value: object) -> None:
    with pytest.raises(ValueError, match="option 'look_s' of grow-shrink must be a number above 0"):
        manager(policy="grow-shrink", options={"policy": {"look_s": value}})
