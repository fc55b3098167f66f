"""Policies that give a GPU to several jobs: who shares with whom, when, and that all of it comes to an end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.clos import clos
from workloads.managers.actions import Action, Migrate, Pack, Preempt, Start
from workloads.managers.catalogue import named_manager
from workloads.managers.cluster_state import ClusterState, empty_cluster
from workloads.managers.durations import Play
from workloads.managers.interfaces import Ended, Event, Submitted, Tick
from workloads.managers.jobs import Waiting
from workloads.managers.ledger import Ledger
from workloads.managers.manager import Manager
from workloads.managers.registry import manager

FABRIC = clos(hosts=2, gpus_per_host=2, nics_per_host=1, tors=1, aggregations=1, port_rate=1e9, fabric_rate=1e9)
EMPTY = empty_cluster(FABRIC)
HOST0, HOST1 = ("h0g0", "h0g1"), ("h1g0", "h1g1")


def job(
    name: str, gpus: int = 2, compute_s: float = 1.0, communication_s: float = 1.0, left_s: float = 100.0
) -> Waiting:
    return Waiting(
        name,
        gpus,
        0.0,
        left_s,
        remaining_s=left_s,
        compute_s=compute_s,
        communication_s=communication_s,
        number=ord(name[0]),
    )


def decided(
    who: Manager, state: ClusterState, waiting: Sequence[Waiting], event: Event
) -> tuple[tuple[Action, ...], ClusterState]:
    actions = who.decide(state, waiting, event)
    for action in actions:
        state = state.after(action)
    return actions, state


def partners(state: ClusterState) -> dict[str, set[str]]:
    return {name: {name, *running.share_gpus_with} for name, running in state.running.items()}


MURI = manager(policy="muri-sharing")
COMPLEMENTS = [
    job("a", compute_s=9),
    job("b", compute_s=8, communication_s=2),
    job("c", communication_s=9),
    job("d", compute_s=2, communication_s=8),
]


def test_jobs_with_room_for_all_share_with_nobody() -> None:
    _, state = decided(MURI, EMPTY, COMPLEMENTS[:2], Submitted("b"))
    assert partners(state) == {"a": {"a"}, "b": {"b"}}


def test_complements_share_where_gpus_are_few() -> None:
    actions, state = decided(MURI, EMPTY, COMPLEMENTS, Submitted("d"))
    assert partners(state) == {"a": {"a", "c"}, "c": {"a", "c"}, "b": {"b", "d"}, "d": {"b", "d"}}
    assert state.free_gpus == 0
    assert [type(action) for action in actions] == [Start, Pack, Start, Pack]


def test_between_rounds_running_jobs_stay_as_they_are_and_at_a_round_they_are_grouped_anew() -> None:
    _, state = decided(MURI, EMPTY, COMPLEMENTS[:2], Submitted("b"))
    actions, state = decided(MURI, state, COMPLEMENTS[2:], Submitted("d"))
    assert actions == ()
    actions, after = decided(MURI, state.at(360.0), COMPLEMENTS[2:], Tick())
    assert [(type(each), each.jobs) for each in actions if isinstance(each, Pack)] == [
        (Pack, ("a", "c")),
        (Pack, ("b", "d")),
    ]
    assert not any(isinstance(each, Preempt) for each in actions)
    assert {name: each.gpus for name, each in after.running.items()} == {"a": HOST0, "c": HOST0, "b": HOST1, "d": HOST1}


def test_a_group_that_changes_takes_off_those_whose_gpus_another_group_has() -> None:
    state = EMPTY.start(job("a"), HOST0).after(Pack((job("a"), job("b")), HOST0, 0.0, "overload"))
    actions, after = decided(MURI, state.at(360.0), [], Tick())  # there is room for both
    assert [(type(each), each.job) for each in actions if not isinstance(each, Pack)] == [(Preempt, "b"), (Start, "b")]
    assert partners(after) == {"a": {"a"}, "b": {"b"}}
    assert after.free_gpus == 0


def test_the_order_says_who_is_admitted_when_not_even_sharing_is_enough() -> None:
    long_ones = [job(name, left_s=left_s) for name, left_s in zip("abcde", (50.0, 40.0, 30.0, 20.0, 10.0), strict=True)]
    _, state = decided(MURI, EMPTY, long_ones, Submitted("e"))
    assert set(state.running) == {"b", "c", "d", "e"}


def test_jobs_that_share_with_one_that_cannot_be_preempted_stay_with_it() -> None:
    pair = (replace(job("a", compute_s=9), preemptible=False), job("b", communication_s=9))
    state = EMPTY.after(Pack(pair, HOST0, 0.0, "for the test")).start(job("c", compute_s=9), HOST1)
    actions, after = decided(MURI, state.at(360.0), [job("d", communication_s=9, left_s=1.0)], Tick())
    assert partners(after)["a"] == partners(after)["b"] == {"a", "b"}
    assert partners(after)["c"] == {"c", "d"}
    assert [each.jobs for each in actions if isinstance(each, Pack)] == [("c", "d")]


def four_stages(name: str, storage_s: float | None, preprocessing_s: float | None, *others: float) -> Waiting:
    compute_s, communication_s = others
    return replace(job(name, 4, compute_s, communication_s), storage_s=storage_s, preprocessing_s=preprocessing_s)


SPECIALISTS = [
    four_stages("a", 3.0, 0.0, 1.0, 0.0),
    four_stages("b", 0.0, 3.0, 1.0, 0.0),
    four_stages("c", 0.0, 0.0, 4.0, 0.0),
    four_stages("d", 0.0, 0.0, 1.0, 3.0),
]


@pytest.mark.parametrize("name", ["muri-s", "muri-l"])
def test_four_jobs_with_four_resources_share_all_gpus(name: str) -> None:
    actions, state = decided(named_manager(name), EMPTY, SPECIALISTS, Submitted("d"))
    assert partners(state)["a"] == {"a", "b", "c", "d"} and state.free_gpus == 0
    assert {each.reason for each in actions} == {"interleaves"}


def test_fewer_jobs_share_if_an_option_says_so() -> None:
    pairs = manager(policy="muri-sharing", options={"policy": {"most_jobs": 2}})
    _, state = decided(pairs, EMPTY, SPECIALISTS, Submitted("d"))
    assert [len(each) for each in partners(state).values()] == [2, 2]
    two = manager(policy="muri-sharing", options={"policy": {"resources": ["network", "compute"]}})
    assert [len(each) for each in partners(decided(two, EMPTY, SPECIALISTS, Submitted("d"))[1]).values()] == [2, 2]


def test_a_decision_says_which_profiles_are_missing() -> None:
    actions, _ = decided(MURI, EMPTY, COMPLEMENTS, Submitted("d"))
    assert {each.reason for each in actions} == {"interleaves; no profile of storage, preprocessing"}
    some = [four_stages("a", 1.0, 1.0, 1.0, 1.0), four_stages("b", None, 1.0, 1.0, 1.0)]
    actions, _ = decided(MURI, EMPTY, some, Submitted("b"))
    assert {each.reason for each in actions} == {"interleaves; no profile of storage (b)"}
    actions, _ = decided(MURI, EMPTY, [job("x", 2, 0.0, 0.0)], Submitted("x"))
    assert [each.reason for each in actions] == [
        "its turn; no profile of storage, preprocessing, compute, network",
    ]


def test_four_jobs_that_interleave_end_as_if_each_were_alone() -> None:
    even = [
        replace(four_stages(name, 1.0, 1.0, 1.0, 1.0), duration_s=100.0, remaining_s=100.0)
        for name in ("a", "b", "c", "d")
    ]
    assert [each.end_s for each in Play(named_manager("muri-s"), FABRIC, even).run()] == [100.0] * 4


@pytest.mark.parametrize(
    "options",
    [
        {"order": "size"},
        {"round_s": 0},
        {"round_s": True},
        {"most_jobs": 0},
        {"most_jobs": 2.5},
        {"resources": "network"},
        {"resources": ["disk"]},
        {"overheads": [0.5]},
        {"overheads": 1.5},
    ],
)
def test_a_wrong_option_of_muri_is_named(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"option '{next(iter(options))}' of muri-sharing must be"):
        manager(policy="muri-sharing", options={"policy": options})


PACKING = manager(policy="packing", seed=1)


def test_packing_waits_for_overload_and_chooses_among_jobs_of_equal_size() -> None:
    _, state = decided(PACKING, EMPTY, [job("a"), job("b", 1), job("c", 1)], Submitted("c"))
    assert all(not running.share_gpus_with for running in state.running.values())
    (pack,), after = decided(PACKING, state, [job("d")], Submitted("d"))
    assert isinstance(pack, Pack) and pack.jobs == ("a", "d") and pack.gpus == HOST0
    assert decided(PACKING, after, [job("e")], Submitted("e"))[0] == ()  # its only equals share already


def test_a_pair_that_would_gain_nothing_is_not_made() -> None:
    slow = manager(policy="packing", options={"policy": {"overhead": 1.5}})
    state = EMPTY.start(job("a", compute_s=9.0), HOST0).start(job("b", compute_s=9.0), HOST1)
    assert decided(slow, state, [job("c", compute_s=9.0)], Submitted("c"))[0] == ()
    assert decided(slow, state, [job("c", communication_s=9.0)], Submitted("c"))[0] != ()
    assert decided(slow, state, [job("c", compute_s=0.0, communication_s=0.0)], Submitted("c"))[0] == ()


def test_one_of_a_pair_moves_to_gpus_that_become_free() -> None:
    state = EMPTY.start(job("a"), HOST0).after(Pack((job("a"), job("b")), HOST0, 0.0, "overload"))
    (move,), after = decided(PACKING, state, [], Ended("c"))
    assert isinstance(move, Migrate) and move.job == "a" and move.pause_s == 1.5
    assert partners(after) == {"a": {"a"}, "b": {"b"}}
    assert after.free_gpus == 0


def packed(*speeds: float) -> ClusterState:
    state = EMPTY.start(job("a"), HOST0).after(Pack((job("a"), job("b")), HOST0, 0.0, "overload"))
    state = state.start(job("c"), HOST1).at(60.0)
    return state.measured(dict(zip("ab", speeds, strict=True))) if speeds else state


def test_a_pair_is_tried_and_undone_if_it_makes_less_progress_than_one_alone() -> None:
    assert PACKING.policy.wakes_at(packed().at(10.0), []) == 60.0  # type: ignore[attr-defined]
    assert decided(PACKING, packed(0.5, 0.3).at(59.0), [], Tick())[0] == ()
    assert decided(PACKING, packed(0.6, 0.5), [], Tick())[0] == decided(PACKING, packed(), [], Tick())[0] == ()
    (undo,), after = decided(PACKING, packed(0.5, 0.3), [job("d", 1)], Tick())
    assert undo == Preempt("b", 60.0, "together 0.80 of one alone", apart_from=("a",))
    assert partners(after)["a"] == {"a"}


def test_a_pair_that_did_not_gain_is_not_made_again() -> None:
    state = EMPTY.start(job("a"), HOST0).start(job("c"), HOST1)
    for seed in range(8):
        again = replace(job("b"), apart_from=("a",))
        (pack,), _ = decided(manager(policy="packing", seed=seed), state, [again], Ended("x"))
        assert isinstance(pack, Pack) and pack.jobs == ("c", "b")


def test_what_a_pair_makes_is_measured_while_it_runs() -> None:
    ledger = Ledger(PACKING, FABRIC)
    for name in "abc":
        ledger.submit(job(name, left_s=1000.0))
    ledger.decide(0.0, lambda name: 1000.0)
    assert partners(ledger.state)["c"] == {"c", "a"} or partners(ledger.state)["c"] == {"c", "b"}
    assert ledger.next_s() == 60.0
    actions = ledger.decide(60.0, lambda name: 980.0)  # a third of a second per second, each
    assert [type(each) for each in actions] == [Preempt]
    (waiting,) = ledger.waiting
    assert waiting.remaining_s == 980.0 and len(waiting.apart_from) == 1


@st.composite
def traces(draw: st.DrawFn) -> list[Waiting]:
    times = st.integers(0, 5)
    jobs = draw(
        st.lists(
            st.tuples(st.sampled_from([1, 2, 4]), st.integers(0, 600), st.integers(1, 900), times, times),
            min_size=1,
            max_size=8,
        )
    )
    return [
        Waiting(
            f"j{number}",
            gpus,
            float(submit_s),
            float(length_s),
            remaining_s=float(length_s),
            compute_s=float(compute_s),
            communication_s=float(communication_s),
        )
        for number, (gpus, submit_s, length_s, compute_s, communication_s) in enumerate(jobs)
    ]


@pytest.mark.parametrize(
    ("policy", "options"), [("muri-sharing", {}), ("muri-sharing", {"order": "attained"}), ("packing", {})]
)
@given(trace=traces(), placer=st.sampled_from(["none", "consolidated", "hived", "muri"]))
@settings(max_examples=60, deadline=None)
def test_every_job_ends_whoever_shares_with_whom(
    policy: str, options: dict[str, object], trace: list[Waiting], placer: str
) -> None:
    for played in Play(manager(placer, policy=policy, options={"policy": options}), FABRIC, trace).run():
        (asked,) = [each for each in trace if each.name == played.name]
        assert played.end_s < 1e6 and asked.duration_s is not None
        assert played.held_s >= asked.duration_s - 1e-6
