"""Jobs whose attempts fail: what their managers know of them, and what a new attempt begins with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.workloads.managers.conftest import cluster
from workloads.managers.cluster_state import ClusterState, empty_cluster
from workloads.managers.durations import Play
from workloads.managers.interfaces import Event, PlacementRequest, Policy, PolicyAction, QueuedJob
from workloads.managers.jobs import Waiting
from workloads.managers.placers.locality import Locality
from workloads.managers.registry import manager


class Looking(Policy):
    """Starts jobs in order, and notes what it knows of them whenever it decides, at least every ``period_s``."""

    name: ClassVar[str] = "looking"
    changes_running: ClassVar[bool] = True

    def __init__(self, period_s: float) -> None:
        self.period_s = period_s
        self.left: list[tuple[float, float | None]] = []
        self.waiting: list[Waiting] = []

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[PolicyAction]:
        self.left += [(state.time_s, each.left_s(state.time_s)) for each in state.running.values()]
        self.left += [(state.time_s, entry.job.left_s) for entry in queued]
        self.waiting += [entry.job for entry in queued]
        for entry in queued:
            yield PlacementRequest(entry.job, entry.job.gpus)

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
        return state.time_s + self.period_s


def looked_at(period_s: float, attempts: tuple[float, ...], **more: float) -> Looking:
    policy = Looking(period_s)
    job = Waiting("job", 4, duration_s=1.0, **more)  # type: ignore[arg-type]
    Play(replace(manager(), policy=policy), cluster(1, 4), [job], attempts={"job": attempts}).run()
    return policy


@given(st.floats(5.0, 50.0), st.lists(st.floats(1.0, 200.0), min_size=1, max_size=5))
def test_policies_know_what_is_left_of_all_attempts(period_s: float, attempts: list[float]) -> None:
    left = looked_at(period_s, tuple(attempts)).left
    assert [seconds for _, seconds in left] == pytest.approx([sum(attempts) - now_s for now_s, _ in left], abs=1e-6)


def test_a_new_attempt_is_a_job_that_has_not_run_yet() -> None:
    first, second, third = looked_at(1000.0, (100.0, 200.0, 300.0)).waiting
    assert replace(second, number=0, remaining_s=600.0, waiting_since_s=None, attempts=0) == first
    assert (second.remaining_s, third.remaining_s) == (500.0, 300.0)
    assert (second.waiting_since_s, third.waiting_since_s) == (100.0, 300.0)
    assert [each.attempts for each in (first, second, third)] == [0, 1, 2]


def test_a_new_attempt_starts_and_does_not_resume() -> None:
    lyra = manager(policy="lyra", options={"policy": {"restart_s": 50.0}})
    job = Waiting("job", 4, 0.0, 300.0, remaining_s=300.0)
    (outcome,) = Play(lyra, cluster(1, 4), [job], attempts={"job": (100.0, 100.0, 100.0)}).run()
    assert outcome.end_s == 300.0


@pytest.mark.parametrize(
    ("job", "placed"), [(Waiting("job", 4, attempts=9), False), (Waiting("job", 4, tries=2), True)]
)
def test_a_job_accepts_less_locality_when_it_was_sent_back_and_not_when_it_failed(job: Waiting, placed: bool) -> None:
    fabric = cluster(2, 4)
    state = empty_cluster(fabric).start(Waiting("one", 2), fabric.gpus[:2]).start(Waiting("two", 2), fabric.gpus[4:6])
    assert (Locality(tries=2).place(state, job, 4) is not None) == placed
