"""Lyra's parts: the knapsack, the value of servers, loans."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from topologies.clos import clos
from workloads.managers.actions import Loan, Preempt, Reclaim, Resize, Start
from workloads.managers.cluster_state import empty_cluster
from workloads.managers.durations import Play
from workloads.managers.interfaces import CapacityChanged, Submitted
from workloads.managers.jobs import Waiting
from workloads.managers.policies.lyra import choose, order_of_return, server_values
from workloads.managers.registry import manager

FABRIC = clos(hosts=4, gpus_per_host=4, nics_per_host=1, tors=2, aggregations=1, port_rate=1e9, fabric_rate=1e9)


def test_the_papers_knapsack() -> None:
    groups = {"A": [50.0], "B": [20.0, 30.0, 36.0, 40.0]}
    assert choose(4, groups) == {"A": 1, "B": 3}


@given(
    st.integers(0, 8),
    st.lists(st.lists(st.integers(0, 50).map(float), max_size=4), max_size=4),
)
def test_the_knapsack_is_that_of_trying_everything(capacity: int, values: list[list[float]]) -> None:
    groups = {str(place): each for place, each in enumerate(values)}
    chosen = choose(capacity, groups)

    def worth(units: tuple[int, ...]) -> float:
        return sum(each[count - 1] for each, count in zip(values, units, strict=True) if count)

    assert sum(chosen.values()) <= capacity
    everything = product(*(range(len(each) + 1) for each in values))
    best = max(worth(units) for units in everything if sum(units) <= capacity)
    assert worth(tuple(chosen.values())) == best


def test_a_job_is_worth_its_part_on_each_of_its_servers() -> None:
    jobs = {"one": ["s0", "s1"], "two": ["s1"], "three": ["s1", "s2"], "four": ["s2", "s3"]}
    half = Fraction(1, 2)
    assert server_values(jobs, ["s0", "s1", "s2", "s3"]) == {"s0": half, "s1": 2, "s2": 1, "s3": half}


def test_values_are_computed_anew_after_each_server_that_went_back() -> None:
    jobs = {"wide": ["s0", "s1"], "small": ["s2"], "other": ["s1"]}
    # s0 goes first (1/2); then s1 hosts only one job, as s2 does, and is the first of the two.
    assert order_of_return(jobs, ["s0", "s1", "s2"], 2) == ["s0", "s1"]
    assert order_of_return(jobs, ["s2", "s1", "s0"], 3) == ["s0", "s2", "s1"]


def test_servers_are_lent_and_reclaimed_and_whoever_ran_there_waits_again() -> None:
    lyra = manager("none", policy="lyra", options={"policy": {"loan_hosts": ["h2", "h3"]}})
    state = empty_cluster(FABRIC, ["h2", "h3"])
    jobs = [Waiting(f"j{number}", 4, duration_s=100.0, number=number) for number in range(4)]
    (loan, *starts) = lyra.decide(state, jobs, CapacityChanged(0.0, lendable=2))
    assert loan == Loan(("h2", "h3"), 0.0, "servers are lent")
    assert [action.job for action in starts if isinstance(action, Start)] == ["j0", "j1", "j2", "j3"]
    for action in (loan, *starts):
        state = state.after(action)
    back = lyra.decide(state.at(50.0), [], CapacityChanged(50.0, lendable=1))
    preempted = [action.job for action in back if isinstance(action, Preempt)]
    assert len(preempted) == 1
    assert [action.hosts for action in back if isinstance(action, Reclaim)] == [("h2",)]


def test_loans_follow_the_load_of_inference_and_shorten_the_queue() -> None:
    lent = ("h2", "h3")
    load = {"hosts": lent, "mean": 0.5, "swing": 0.5, "spare": 0.0}
    jobs = [Waiting(f"j{n}", 4, 0.0, 30_000.0, remaining_s=30_000.0) for n in range(6)]
    ends = {}
    for policy, options in (("gang", {}), ("lyra", {"loan_hosts": lent, "restart_s": 0.0})):
        made = manager("none", policy=policy, capacity="inference", options={"capacity": load, "policy": options})
        ends[policy] = sum(each.end_s for each in Play(made, FABRIC, jobs).run()) / len(jobs)
    assert ends["lyra"] < ends["gang"]


def test_an_elastic_job_shrinks_to_let_another_start() -> None:
    lyra = manager("none", policy="lyra")
    first = Waiting("first", 16, duration_s=100.0, min_gpus=4, max_gpus=16)
    state = empty_cluster(FABRIC)
    for action in lyra.decide(state, [first], Submitted("first")):
        state = state.after(action)
    assert len(state.running["first"].gpus) == 16
    second = Waiting("second", 8, duration_s=10.0, number=1)
    for action in lyra.decide(state.at(1.0), [second], Submitted("second")):
        state = state.after(action)
    assert {name: len(each.gpus) for name, each in state.running.items()} == {"first": 8, "second": 8}


def test_what_is_left_of_a_job_falls_through_every_change_of_its_size() -> None:
    state = empty_cluster(FABRIC).start(Waiting("job", 8, duration_s=100.0), FABRIC.gpus[:8])
    for at_s, gpus, left_s in ((10.0, 4, 90.0), (30.0, 16, 80.0), (40.0, 8, 60.0)):
        state = state.at(at_s).after(Resize("job", FABRIC.gpus[:gpus], at_s, "for the test"))
        assert state.running["job"].left_s(at_s) == left_s
