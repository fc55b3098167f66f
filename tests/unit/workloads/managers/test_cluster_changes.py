"""Many changes of a cluster in a row: as one by one, with one copy, and none of them in a state that others have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.workloads.managers.conftest import cluster
from workloads.managers.actions import Action, Loan, Migrate, Pack, Preempt, Reclaim, Requeue, Start
from workloads.managers.cluster_state import Changes, ClusterState, empty_cluster
from workloads.managers.interfaces import Tick
from workloads.managers.jobs import Waiting
from workloads.managers.ledger import Ledger
from workloads.managers.registry import manager

FABRIC = cluster(3, 4)
EMPTY = empty_cluster(FABRIC)


def job(name: str, gpus: int = 1, number: int = 0) -> Waiting:
    return Waiting(name, gpus, 0.0, 1e4, remaining_s=1e4, compute_s=1.0, communication_s=0.5, number=number)


def actions(state: ClusterState, name: str, other: str, gpus: int) -> list[Action]:
    """What can happen to the job ``name`` in this state."""
    free = tuple(gpu for host in FABRIC.hosts for gpu in state.free_on(host))[:gpus]
    if name not in state.running:
        start: list[Action] = [Start(job(name, gpus), free, 0.0, "")] if len(free) == gpus else []
        partner = state.running.get(other)
        return start if partner is None else [*start, Pack((partner.job, job(name)), partner.gpus, 0.0, "")]
    running = state.running[name]
    moves: list[Action] = [Migrate(name, free, 0.0, "")] if len(free) == len(running.gpus) else []
    return [Preempt(name, 0.0, ""), Requeue(name, 9.0, 0.0, ""), *moves]


def of_hosts(state: ClusterState, host: str) -> list[Action]:
    if host in state.absent:
        return [Loan((host,), 0.0, "")]
    return [] if state.jobs_on([host]) else [Reclaim((host,), 0.0, "")]


def everything(state: ClusterState) -> tuple[object, ...]:
    arrays = (state.free.tolist(), state.free_by_host.tolist(), state.job_size.tolist(), state.free_gpus)
    held = [(name, indices.tolist()) for name, indices in state.held.items()]
    return (*arrays, list(state.running.items()), held, state.absent, state.loaned)


def sizes(state: ClusterState) -> list[int]:
    found = dict.fromkeys(FABRIC.gpus, 0)
    found.update((gpu, len(each.gpus)) for each in state.running.values() for gpu in each.gpus)
    return [found[gpu] for gpu in FABRIC.gpus]


NAMES = st.sampled_from("abcde")
STEPS = st.tuples(NAMES, NAMES, st.integers(1, 5), st.sampled_from(sorted(FABRIC.hosts)), st.integers(0, 9))


@given(steps=st.lists(STEPS, max_size=20))
@settings(deadline=None)
def test_changes_in_a_row_leave_the_cluster_as_one_by_one(steps: list[tuple[str, str, int, str, int]]) -> None:
    state, changes = EMPTY, Changes(EMPTY)
    for name, other, gpus, host, choice in steps:
        possible = [*actions(state, name, other, gpus), *of_hosts(state, host)]
        if possible:
            action, before = possible[choice % len(possible)], everything(state)
            following = state.after(action)
            changes.apply(action)
            assert everything(state) == before
            state = following
        assert everything(changes.state) == everything(state)
        assert state.job_size.tolist() == sizes(state)
    assert everything(EMPTY) == everything(empty_cluster(FABRIC))


def test_nobody_can_write_to_a_state() -> None:
    for array in (Changes(EMPTY).state.free, EMPTY.free_by_host, EMPTY.start(job("a"), ("h0g0",)).job_size):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def decided(policy: str, hosts: int, time_s: float) -> Callable[[], object]:
    """A decision with a job on each GPU, and as many that wait."""
    there, who = cluster(hosts, 4), manager("affinity", policy=policy)
    state = empty_cluster(there)
    for number, gpu in enumerate(there.gpus):
        state = state.start(job(f"r{number}", number=number), (gpu,))
    waiting = [job(f"w{number}", number=len(there.gpus) + number) for number in range(len(there.gpus))]
    return lambda: who.decide(state.at(time_s), waiting, Tick())


def booked(policy: str, hosts: int, time_s: float) -> Callable[[], object]:
    """The same with the books of the manager."""
    there = cluster(hosts, 4)
    ledger = Ledger(manager("affinity", policy=policy), there)
    for number in range(2 * len(there.gpus)):
        ledger.submit(job(f"j{number}"))
    del ledger._events[1:]  # of all that were submitted at once one is enough
    ledger.decide(0.0, lambda _name: 1e4)
    return lambda: ledger.decide(time_s, lambda _name: 1e4 - time_s)


@pytest.mark.parametrize("decision", [decided, booked])
@pytest.mark.parametrize("policy", ["gandiva", "packing", "time-slices"])
@pytest.mark.parametrize("time_s", [30.0, 60.0])
def test_a_decision_of_any_number_of_actions_copies_the_cluster_a_few_times(
    decision: Callable[[str, int, float], Callable[[], object]],
    policy: str,
    time_s: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin = Changes.__init__

    def copies(hosts: int) -> int:
        decide, copied = decision(policy, hosts, time_s), list[ClusterState]()

        def counted(changes: Changes, state: ClusterState) -> None:
            copied.append(state)
            begin(changes, state)

        with monkeypatch.context() as patched:
            patched.setattr(Changes, "__init__", counted)
            decide()
        return len(copied)

    assert copies(2) == copies(16) <= 2


def test_jobs_that_give_way_in_one_decision_wait_in_order_of_submission() -> None:
    ledger = Ledger(manager("affinity", policy="time-slices"), FABRIC)
    for number in range(24):
        ledger.submit(job(f"j{number}"))
    ledger.decide(0.0)
    assert [each.number for each in ledger.waiting] == list(range(12, 24))
    ledger.decide(60.0)
    assert [each.number for each in ledger.waiting] == list(range(12))


def test_what_queues_use_is_counted_again_after_every_change() -> None:
    begun = EMPTY.start(job("a", 2), FABRIC.gpus[:2])
    limited = replace(begun, limits={name: {"queue": 4.0} for name in "abc"})
    changes = Changes(limited)
    assert changes.state.most_gpus("c") == 2.0
    pack = Pack((job("a", 2), job("b", 2)), FABRIC.gpus[:2], 0.0, "")
    changes.apply(pack)
    assert changes.state.most_gpus("c") == limited.after(pack).most_gpus("c") == 0.0
