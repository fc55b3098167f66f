"""Lyra's parts: the knapsack, the value of servers, loans."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.clos import clos
from workloads.managers.actions import Loan, Preempt, Reclaim, Resize, Start
from workloads.managers.capacities.gpu_types import gpu_types
from workloads.managers.cluster_state import empty_cluster
from workloads.managers.durations import Play
from workloads.managers.interfaces import CapacityChanged, Submitted
from workloads.managers.jobs import Waiting
from workloads.managers.policies.lyra import choose
from workloads.managers.policies.lyra_reclaim import Footprint, Return, order_of_return, returns, server_values
from workloads.managers.registry import create, manager

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


def test_a_server_that_scaling_in_frees_goes_back_before_one_that_costs_a_preemption() -> None:
    jobs = {"inelastic": Footprint({"s0": 4}, 4), "elastic": Footprint({"s1": 4, "s2": 2}, 2)}
    assert returns(jobs, ["s0", "s1", "s2"], 3) == [
        Return("s2", scaled_in=("elastic",)),  # two GPUs are given up there, four on s1
        Return("s0", preempted=("inelastic",)),  # the elastic job has no more than its minimum on s1: as costly, later
        Return("s1", preempted=("elastic",)),
    ]


def test_of_equal_sums_later_jobs_get_less() -> None:
    assert choose(4, {"A": [5.0, 2.0, 7.0], "B": [3.0, 1.0, 5.0]}) == {"A": 3, "B": 1}


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True), st.integers(0, 3))),
    st.integers(0, 4),
)
def test_a_job_is_preempted_only_where_it_would_be_left_with_too_few_gpus(
    drawn: list[tuple[list[int], int]], count: int
) -> None:
    jobs = {
        str(number): Footprint({f"s{host}": 2 for host in hosts}, max(1, 2 * len(hosts) - spare))
        for number, (hosts, spare) in enumerate(drawn)
    }
    left = dict(jobs)
    for each in returns(jobs, ["s0", "s1", "s2", "s3"], count):
        for name in each.scaled_in:
            left[name] = left[name].without(each.host)
            assert sum(left[name].gpus.values()) >= left[name].least
        for name in each.preempted:
            assert not left.pop(name).keeps_enough_without(each.host)
        assert not any(each.host in job.gpus for job in left.values())


def test_an_elastic_job_is_scaled_in_on_a_reclaim_and_nobody_is_preempted() -> None:
    options = {"policy": {"loan_hosts": ["h2", "h3"], "resize_s": 5.0}}
    lyra = manager("elastic-groups", policy="lyra", options=options)
    state = empty_cluster(FABRIC, ["h2", "h3"])
    jobs = [
        Waiting("elastic", 8, duration_s=1000.0, min_gpus=4, max_gpus=8),
        Waiting("other", 8, duration_s=1000.0, number=1),
    ]
    for action in lyra.decide(state, jobs, CapacityChanged(0.0, lendable=2)):
        state = state.after(action)
    assert {name: sorted({gpu[:2] for gpu in each.gpus}) for name, each in state.running.items()} == {
        "elastic": ["h2", "h3"],  # on loan
        "other": ["h0", "h1"],
    }
    back = lyra.decide(state.at(50.0), [], CapacityChanged(50.0, lendable=1))
    (scaled_in, reclaimed) = back
    assert isinstance(scaled_in, Resize) and (scaled_in.job, len(scaled_in.gpus), scaled_in.pause_s) == (
        "elastic",
        4,
        5.0,
    )
    assert isinstance(reclaimed, Reclaim) and reclaimed.hosts == ("h2",)
    assert not any(gpu.startswith(reclaimed.hosts[0]) for gpu in scaled_in.gpus)


def test_a_job_grows_only_if_that_saves_more_than_the_resize_costs() -> None:
    def ended_s(resize_s: float) -> float:
        lyra = manager("none", policy="lyra", options={"policy": {"resize_s": resize_s}})
        jobs = [
            Waiting("elastic", 8, 0.0, 100.0, remaining_s=100.0, min_gpus=8, max_gpus=16),
            Waiting("other", 8, 0.0, 40.0, remaining_s=40.0, number=1),
        ]
        return max(each.end_s for each in Play(lyra, FABRIC, jobs).run())

    # At 40 s there are 60 s left on 8 GPUs, or 30 s on 16 and the pause.
    assert [ended_s(resize_s) for resize_s in (0.0, 20.0, 31.0)] == [70.0, 90.0, 100.0]


def test_base_and_flexible_workers_are_on_different_servers_and_base_workers_stay() -> None:
    placer = create("placer", "elastic-groups")
    first = Waiting("first", 4, min_gpus=2, max_gpus=6)
    placement = placer.place(empty_cluster(FABRIC), first, 4)
    assert placement.bound == ("h0g0", "h0g1") and placement.gpus == ("h0g0", "h0g1", "h1g0", "h1g1")
    state = empty_cluster(FABRIC).start(first, placement.gpus, placement.bound)
    second = placer.place(state, Waiting("second", 4, min_gpus=2, max_gpus=4), 4)
    # Base workers beside base workers, flexible ones beside flexible ones.
    assert second.gpus == ("h0g2", "h0g3", "h1g2", "h1g3")
    smaller = placer.resized(state, state.running["first"], 2)
    assert smaller.gpus == ("h0g0", "h0g1")
    larger = placer.resized(state, state.running["first"], 6)
    assert larger.gpus == ("h0g0", "h0g1", "h1g0", "h1g1", "h1g2", "h1g3")
    assert larger.bound == ("h0g0", "h0g1")


def test_a_job_uses_gpus_of_one_speed_unless_jobs_may_mix_them() -> None:
    slow = {"T4": ["h2", "h3"]}
    placer = create("placer", "elastic-groups")
    wide = Waiting("wide", 12)
    assert placer.place(empty_cluster(FABRIC, gpu_types=gpu_types(slow)), wide, 12) is None
    assert placer.place(empty_cluster(FABRIC, gpu_types=gpu_types(slow)), wide, 8).gpus == FABRIC.gpus[:8]
    assert placer.place(empty_cluster(FABRIC, gpu_types=gpu_types(slow, mixed_efficiency=0.8)), wide, 12) is not None


@pytest.mark.parametrize(("on_loan_first", "own"), [(True, 1), (False, 7)])
def test_a_job_on_several_types_has_of_each_what_the_policy_counts(on_loan_first: bool, own: int) -> None:
    """All of one type before any of the next: what is left free is what the policy gives to other jobs."""
    types = gpu_types({"T4": ["h2", "h3"]}, mixed_efficiency=0.7)
    lent = Loan(("h2", "h3"), 0.0, "for the test")
    state = empty_cluster(FABRIC, ["h2", "h3"], gpu_types=types).after(lent).start(Waiting("one", 1), ("h0g0",))
    placer = create("placer", "elastic-groups", {"on_loan_first": on_loan_first})
    fixed = placer.place(state, Waiting("fixed", 9), 9)
    assert sum(gpu[:2] in ("h0", "h1") for gpu in fixed.gpus) == 7
    elastic = placer.place(state, Waiting("elastic", 9, min_gpus=9, max_gpus=18), 9)
    assert sum(gpu[:2] in ("h0", "h1") for gpu in elastic.gpus) == own
    assert set(elastic.bound) == set(elastic.gpus)


def test_a_job_is_as_slow_as_its_slowest_gpu_or_shares_its_batch_by_speed() -> None:
    hosts = ["h0", "h0", "h2", "h2"]
    assert gpu_types({"T4": ["h2"]}, {"T4": 0.5}).speed(hosts) == 2.0
    assert gpu_types({"T4": ["h2"]}, {"T4": 0.5}, 0.9).speed(hosts) == pytest.approx(0.9 * 3.0)
    assert gpu_types({"T4": ["h2"]}).speed(["h2"]) == pytest.approx(8.1 / 15.7)
    with pytest.raises(ValueError, match="unknown GPU type 'K80', expected one of A100, T4, V100"):
        gpu_types({"K80": ["h2"]})


@st.composite
def crowds(draw: st.DrawFn) -> list[Waiting]:
    jobs = []
    for number in range(draw(st.integers(1, 8))):
        gpus, duration_s = draw(st.integers(1, 8)), float(draw(st.integers(1000, 60_000)))
        least, most = draw(st.integers(1, gpus)), draw(st.integers(gpus, 16))
        elastic = {"min_gpus": least, "max_gpus": most} if draw(st.booleans()) else {}
        submit_s = float(draw(st.integers(0, 40_000)))
        jobs.append(Waiting(f"j{number}", gpus, submit_s, duration_s, remaining_s=duration_s, **elastic))
    return jobs


@given(jobs=crowds(), placer=st.sampled_from(["elastic-groups", "consolidated"]), resize_s=st.sampled_from([0.0, 30.0]))
@settings(max_examples=30, deadline=None)
def test_with_loans_of_slow_servers_every_job_ends_and_does_its_work(
    jobs: list[Waiting], placer: str, resize_s: float
) -> None:
    lent = ["h2", "h3"]
    options = {
        "policy": {"loan_hosts": lent, "resize_s": resize_s},
        "capacity": {"hosts": lent, "mean": 0.5, "swing": 0.5},
    }
    lyra = manager(placer, policy="lyra", capacity="inference", options=options)
    made = Play(lyra, FABRIC, jobs, gpu_types=gpu_types({"T4": lent}, {"T4": 0.5})).run()
    for each, job in zip(made, sorted(jobs, key=lambda job: job.submit_s), strict=True):
        assert each.end_s is not None
        work = job.gpus * (job.duration_s or 0.0)  # a GPU does one second of it in a second, or in two
        assert work * (1 - 1e-9) <= each.allocated_gpu_s


def test_on_slow_servers_on_loan_a_job_takes_longer() -> None:
    options = {"policy": {"loan_hosts": ["h2", "h3"]}, "capacity": {"hosts": ["h2", "h3"], "mean": 0.2, "swing": 0.1}}
    lyra = manager("elastic-groups", policy="lyra", capacity="inference", options=options)
    jobs = [Waiting(f"j{n}", 8, 0.0, 100.0, remaining_s=100.0) for n in range(2)]
    jobs[1] = replace(jobs[1], gpus=4)
    ends = {
        each.name: each.end_s
        for each in Play(lyra, FABRIC, jobs, gpu_types=gpu_types({"T4": ["h2", "h3"]}, {"T4": 0.5})).run()
    }
    assert ends == {"j0": 100.0, "j1": 200.0}


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


def test_a_job_that_asks_for_a_type_waits_for_its_gpus_and_others_take_what_is_lent() -> None:
    types = gpu_types({"T4": ["h2", "h3"]}, {"T4": 0.5})
    lyra = manager("elastic-groups", policy="lyra")
    state = empty_cluster(FABRIC, gpu_types=types)
    jobs = [
        Waiting("long", 8, duration_s=90.0, gpu_type="V100", number=0),
        Waiting("short", 8, duration_s=10.0, gpu_type="V100", number=1),
        Waiting("any", 8, duration_s=50.0, number=2),
    ]
    starts = {action.job: action.gpus for action in lyra.decide(state, jobs, Submitted("any"))}
    assert {gpu[:2] for gpu in starts["short"]} == {"h0", "h1"}
    assert {gpu[:2] for gpu in starts["any"]} == {"h2", "h3"}
    assert "long" not in starts


def test_a_job_that_no_type_could_hold_is_refused_in_a_line() -> None:
    lyra = manager("elastic-groups", policy="lyra")
    state = empty_cluster(FABRIC, gpu_types=gpu_types({"T4": ["h2", "h3"]}))
    refusal = lyra.refusal(state.structure, Waiting("j", 9, gpu_type="V100"))
    assert refusal == "job 'j' asks for 9 GPUs of type 'V100', the fabric has 8"
    assert lyra.refusal(state.structure, Waiting("j", 9)) == "job 'j' asks for 9 GPUs of one type, the fabric has 8"
    mixing = empty_cluster(FABRIC, gpu_types=gpu_types({"T4": ["h2", "h3"]}, mixed_efficiency=0.7))
    assert lyra.refusal(mixing.structure, Waiting("j", 9)) is None


def test_a_job_grows_onto_another_type_only_if_that_makes_it_faster() -> None:
    job = Waiting("j", 8, duration_s=1000.0, min_gpus=8, max_gpus=12)
    sizes = {}
    for efficiency in (0.5, 1.0):
        types = gpu_types({"T4": ["h2", "h3"]}, {"T4": 0.5}, mixed_efficiency=efficiency)
        lyra = manager("elastic-groups", policy="lyra")
        state = empty_cluster(FABRIC, gpu_types=types)
        (start, *_) = lyra.decide(state, [job], Submitted("j"))
        sizes[efficiency] = len(start.gpus)
    assert sizes == {0.5: 8, 1.0: 12}


def test_the_capacity_says_which_hosts_may_be_lent_and_what_gpus_they_have() -> None:
    options = {"capacity": {"hosts": ["h2", "h3"], "mean": 0.2, "swing": 0.1, "gpu_type": "T4"}}
    lyra = manager("elastic-groups", policy="lyra", capacity="inference", options=options)
    jobs = [Waiting(f"j{n}", 8 - 4 * n, 0.0, 100.0, remaining_s=100.0) for n in range(2)]
    ends = {each.name: each.end_s for each in Play(lyra, FABRIC, jobs).run()}
    assert ends == {"j0": 100.0, "j1": pytest.approx(100.0 * 15.7 / 8.1)}
    with pytest.raises(ValueError, match="options 'speed' and 'mixed_efficiency' of inference need a 'gpu_type'"):
        manager("none", capacity="inference", options={"capacity": {"speed": 0.5}})
