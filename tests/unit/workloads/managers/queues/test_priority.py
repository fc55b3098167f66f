"""HiveD's priorities: inside a virtual cluster a higher one goes first, and nobody else pays for it."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.clos import clos
from workloads.managers.actions import Action, Preempt
from workloads.managers.catalogue import named_manager
from workloads.managers.cluster_state import ClusterState, empty_cluster
from workloads.managers.interfaces import Submitted
from workloads.managers.jobs import Waiting
from workloads.managers.ledger import Ledger
from workloads.managers.manager import Manager
from workloads.managers.registry import manager

FABRIC: Final = clos(hosts=4, gpus_per_host=4, nics_per_host=1, tors=2, aggregations=1, port_rate=1e9, fabric_rate=1e9)
EMPTY: Final = empty_cluster(FABRIC)
QUOTAS: Final = {"a": {"host": 2}, "b": {"host": 1, "pair": 2}}


def hived(quotas: object = QUOTAS) -> Manager:
    return manager("hived", "priority", "guarantee", options={"placer": {"virtual_clusters": quotas}})


def job(name: str, gpus: int, priority: int = 0, virtual_cluster: str = "a", opportunistic: bool = False) -> Waiting:
    return Waiting(
        name, gpus, virtual_cluster=virtual_cluster, priority=priority, opportunistic=opportunistic, number=len(name)
    )


def ledger_of(*jobs: Waiting) -> Ledger:
    """Each submitted and decided on by itself, a second apart."""
    books = Ledger(hived(), FABRIC)
    for second, each in enumerate(jobs):
        books.submit(each)
        books.decide(float(second))
    return books


def preempted(actions: list[Action]) -> list[str]:
    return [action.job for action in actions if isinstance(action, Preempt)]


def test_a_job_of_higher_priority_preempts_a_lower_one_before_it_waits() -> None:
    books = ledger_of(job("low", 8, 0))
    books.submit(job("high", 4, 1))
    assert preempted(books.decide(9.0)) == ["low"]
    assert set(books.state.running) == {"high"}
    assert [each.name for each in books.waiting] == ["low"]


@pytest.mark.parametrize("priority", [0, -1])
def test_a_job_of_no_higher_priority_waits(priority: int) -> None:
    books = ledger_of(job("first", 8, 0), job("second", 4, priority))
    assert set(books.state.running) == {"first"}


def test_nobody_is_preempted_while_there_is_room() -> None:
    books = ledger_of(job("low", 4, 0), job("high", 4, 5))
    assert set(books.state.running) == {"low", "high"}


def test_the_lowest_priority_makes_way_first_and_of_equals_the_last_to_start() -> None:
    books = ledger_of(job("old", 2, 1), job("older", 2, 0), job("young", 2, 0), job("other", 2, 2))
    books.submit(job("high", 2, 9))
    assert preempted(books.decide(9.0)) == ["young"]


def test_another_virtual_cluster_never_makes_way() -> None:
    books = ledger_of(job("theirs", 8, 0, "b"), job("mine", 8, 3, "a"), job("urgent", 4, 2, "a"))
    assert set(books.state.running) == {"theirs", "mine"}


def test_a_job_that_not_even_preemption_helps_preempts_nobody() -> None:
    books = ledger_of(job("low", 4, 0), job("equal", 4, 1), job("wide", 8, 1))
    assert set(books.state.running) == {"low", "equal"}


def test_waiting_jobs_start_by_priority_then_in_order() -> None:
    queue = named_manager("hived").queue
    waiting = [job("a", 1, 0), job("b", 1, 2), job("guest", 1, 9, opportunistic=True), job("c", 1, 2)]
    assert [entry.job.name for entry in queue.eligible(EMPTY, waiting)] == ["b", "c", "a", "guest"]


def test_guests_and_lower_priorities_make_way_together() -> None:
    books = ledger_of(
        job("low", 4, 0), job("guest", 4, 0, "b", opportunistic=True), job("guest2", 8, 0, "b", opportunistic=True)
    )
    books.submit(job("high", 8, 1))
    gone = preempted(books.decide(9.0))
    assert "low" in gone and "high" in books.state.running


def test_a_full_quota_makes_a_lower_priority_leave_even_where_other_gpus_are_free() -> None:
    books = Ledger(hived({"a": {"host": 1}}), FABRIC)
    books.submit(job("low", 4, 0))
    books.decide(0.0)
    books.submit(job("high", 4, 1))
    assert preempted(books.decide(1.0)) == ["low"]
    assert set(books.state.running) == {"high"}


def keeps_its_quotas(state: ClusterState) -> bool:
    """Whether no virtual cluster has bound more cells than its quota."""
    bound = {(run.job.virtual_cluster, cell) for run in state.running.values() for cell in run.bound}
    used = Counter((name, cell.partition(":")[0]) for name, cell in bound)
    return all(count <= QUOTAS[name].get(level, 0) for (name, level), count in used.items())


def could_start(state: ClusterState, each: Waiting) -> bool:
    """Whether the job has a place once all that may have to make way for it are gone."""
    for name, running in state.running.items():
        same = running.job.virtual_cluster == each.virtual_cluster
        if running.job.opportunistic or (same and running.job.priority < each.priority):
            state = state.end(name)
    return hived().placer.place(state, each, each.gpus) is not None


def checked(before: ClusterState, each: Waiting, actions: tuple[Action, ...]) -> ClusterState:
    """The state after ``actions``; asserts who was preempted, and that ``each`` does not wait without need."""
    state = before
    for action in actions:
        if isinstance(action, Preempt):
            victim = before.running[action.job].job
            assert not each.opportunistic
            lower = victim.virtual_cluster == each.virtual_cluster and victim.priority < each.priority
            assert victim.opportunistic or lower
        state = state.after(action)
    if not each.opportunistic:
        assert (each.name in state.running) == could_start(before, each)
    assert keeps_its_quotas(state)
    return state


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**9))
def test_a_job_gets_what_its_virtual_cluster_could_give_it_without_lower_priorities(seed: int) -> None:
    random, books, state = Random(seed), hived(), EMPTY
    for step in range(25):
        if state.running and random.random() < 0.3:
            state = state.end(random.choice(sorted(state.running)))
            continue
        each = job(
            f"j{step}", random.choice([1, 2, 4, 8]), random.randint(0, 3), random.choice("ab"), random.random() < 0.3
        )
        state = checked(state, each, books.decide(state, [each], Submitted(each.name)))
    for name, quota in QUOTAS.items():  # what was promised is there at the highest priority, whatever happened before
        for level, count in quota.items():
            for number in range(count):
                size = {"host": 4, "pair": 2}[level]
                each = job(f"promised-{name}-{level}-{number}", size, 9, name)
                state = checked(state, each, books.decide(state, [each], Submitted(each.name)))
                assert each.name in state.running
