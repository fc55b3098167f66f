"""What is left of a running job is true at every decision: pauses and shared GPUs do not count as work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.workloads.managers.conftest import cluster
from workloads.managers.cluster_state import ClusterState
from workloads.managers.durations import Play
from workloads.managers.interfaces import Event, PlacementRequest, Policy, PolicyAction, QueuedJob
from workloads.managers.jobs import Waiting
from workloads.managers.manager import Manager
from workloads.managers.registry import manager

PAUSE_S = 5.0


class Resizing(Policy):
    """Starts a job on one GPU, and resizes it between one and two every ``period_s``; notes what it sees."""

    name: ClassVar[str] = "resizing"
    changes_running: ClassVar[bool] = True

    def __init__(self, period_s: float) -> None:
        self.period_s = period_s
        self.seen: list[tuple[float, float]] = []

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[PolicyAction]:
        for entry in queued:
            yield PlacementRequest(entry.job, 1)
        for running in state.running.values():
            left_s = running.left_s(state.time_s)
            assert left_s is not None
            self.seen.append((state.time_s, left_s))
            yield PlacementRequest(running.job, 3 - len(running.gpus), "resize", pause_s=PAUSE_S)

    def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
        return state.time_s + self.period_s


class Uninterested(Resizing):
    needs_remaining: ClassVar[bool] = False


def seen_by(policy: Resizing, duration_s: float) -> list[tuple[float, float]]:
    composed: Manager = replace(manager(), policy=policy)
    job = Waiting("job", 2, duration_s=duration_s, remaining_s=duration_s)
    Play(composed, cluster(1, 2), [job]).run()
    return policy.seen


def test_pauses_for_a_resize_are_no_work() -> None:
    left_s = [seconds for _, seconds in seen_by(Resizing(20.0), 60.0)]
    assert left_s == pytest.approx([50.0, 35.0, 27.5, 12.5, 5.0])


@given(st.floats(6.0, 40.0), st.floats(30.0, 300.0))
def test_what_is_left_follows_from_gpus_and_pauses_alone(period_s: float, duration_s: float) -> None:
    left_s, gpus, pause_s = duration_s, 1, 0.0
    for _, seen_s in seen_by(Resizing(period_s), duration_s):
        left_s -= (period_s - pause_s) * gpus / 2
        assert seen_s == pytest.approx(left_s, abs=1e-6)
        gpus, pause_s = 3 - gpus, PAUSE_S


def test_a_policy_that_does_not_need_it_is_not_told() -> None:
    first, second, *_ = seen_by(Uninterested(20.0), 60.0)
    assert first == (20.0, 50.0)
    assert second == (40.0, 30.0)  # as if it had not paused
