"""The composition of queue, policy, placer and capacity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.clos import clos
from workloads.managers.actions import Action, Loan, Migrate, Preempt, Reclaim, Requeue, Resize, Start
from workloads.managers.capacities.planned import Planned, Steady
from workloads.managers.cluster_state import ClusterState, empty_cluster
from workloads.managers.interfaces import (
    CapacityChanged,
    Ended,
    Event,
    PlacementRequest,
    PolicyAction,
    QueuedJob,
    Submitted,
    Tick,
)
from workloads.managers.jobs import Placement, Waiting
from workloads.managers.manager import Manager
from workloads.managers.placers.first_free import FirstFree
from workloads.managers.policies.gang import Gang
from workloads.managers.queues.fifo import Fifo, FifoBackfill
from workloads.managers.registry import manager, names

FABRIC = clos(hosts=8, gpus_per_host=4, nics_per_host=2, tors=4, aggregations=2, port_rate=1e9, fabric_rate=1e9)
EMPTY = empty_cluster(FABRIC, time_s=7.0)


class Says:
    """A policy that says what it is told to."""

    name = "says"
    summary = "for tests"

    def __init__(self, *wishes: PolicyAction) -> None:
        self.wishes = wishes

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterable[PolicyAction]:
        return self.wishes


def saying(*wishes: PolicyAction) -> Manager:
    return Manager(Fifo(), Says(*wishes), FirstFree(), Steady())


def jobs(*sizes: int) -> list[Waiting]:
    return [Waiting(f"j{index}", size, submit_s=float(index)) for index, size in enumerate(sizes)]


def started(actions: Sequence[Action]) -> list[str]:
    return [action.job for action in actions if isinstance(action, Start)]


def test_a_job_starts_on_the_gpus_that_the_placer_finds() -> None:
    (start,) = manager().decide(EMPTY, jobs(2), Submitted("j0"))
    assert start == Start(jobs(2)[0], ("h0g0", "h0g1"), 7.0, "its turn")


def test_in_strict_order_nobody_passes_a_job_that_does_not_fit() -> None:
    assert started(manager(queue="fifo").decide(EMPTY, jobs(20, 16, 4), Tick())) == ["j0"]


def test_with_backfill_whoever_fits_may_pass() -> None:
    assert started(manager(queue="fifo-backfill").decide(EMPTY, jobs(20, 16, 4), Tick())) == ["j0", "j2"]


def test_a_line_that_stands_does_not_hold_up_another() -> None:
    large, small = jobs(33, 1)
    stuck = PlacementRequest(large, 33, line="vision")
    actions = saying(
        stuck, PlacementRequest(small, 1, line="vision"), PlacementRequest(small, 1, line="speech")
    ).decide(EMPTY, [], Tick())
    assert started(actions) == ["j1"]


def test_a_wish_without_a_place_gets_what_it_asked_for_otherwise() -> None:
    back_off = Requeue("j0", 127.0, 7.0, "no rack has room")
    assert saying(PlacementRequest(jobs(33)[0], 33, otherwise=back_off)).decide(EMPTY, [], Tick()) == (back_off,)


def test_gpus_of_a_preempted_job_serve_the_next_wish() -> None:
    running, new = Waiting("running", 32), Waiting("new", 32)
    state = EMPTY.start(running, FABRIC.gpus)
    preempt = Preempt("running", 7.0, "fair share")
    actions = saying(preempt, PlacementRequest(new, 32, reason="its share", pause_s=30.0)).decide(state, [new], Tick())
    assert actions == (preempt, Start(new, FABRIC.gpus, 7.0, "its share", pause_s=30.0))


def test_a_job_is_resized_and_moved_as_if_its_gpus_were_free() -> None:
    job = Waiting("j", 2)
    state = EMPTY.start(job, ("h0g2", "h0g3"))
    (resize,) = saying(PlacementRequest(job, 3, kind="resize", reason="idle GPUs")).decide(state, [], Tick())
    assert resize == Resize("j", ("h0g0", "h0g1", "h0g2"), 7.0, "idle GPUs")
    (migrate,) = saying(PlacementRequest(job, 2, kind="migrate", pause_s=2.0)).decide(state, [], Tick())
    assert migrate == Migrate("j", ("h0g0", "h0g1"), 7.0, "", pause_s=2.0)


def test_jobs_on_a_host_that_leaves_are_preempted_and_start_elsewhere() -> None:
    job = Waiting("j", 4)
    state = EMPTY.start(job, ("h0g0", "h0g1", "h0g2", "h0g3"))
    waiting = [Waiting("next", 4, number=1)]
    actions = manager().decide(state, waiting, CapacityChanged(7.0, leaving=("h0",), reason="failed"))
    assert actions[:2] == (Preempt("j", 7.0, "failed"), Reclaim(("h0",), 7.0, "failed"))
    assert [(action.job, action.gpus[0]) for action in actions if isinstance(action, Start)] == [
        ("j", "h1g0"),
        ("next", "h2g0"),
    ]


def test_hosts_that_join_are_used_at_once() -> None:
    state = empty_cluster(FABRIC, absent=list(FABRIC.hosts)[1:])
    actions = manager().decide(state, jobs(8), CapacityChanged(0.0, joining=("h5",), reason="night"))
    assert actions[0] == Loan(("h5",), 0.0, "night")
    assert started(actions) == ["j0"]


def test_planned_changes_come_by_time() -> None:
    late, early = CapacityChanged(9.0, leaving=("h0",)), CapacityChanged(2.0, joining=("h1",))
    assert list(Planned([late, early]).changes(FABRIC)) == [early, late]
    assert list(Steady().changes(FABRIC)) == []


@pytest.mark.parametrize(
    ("gpus", "reason"),
    [
        (33, "job 'j' asks for 33 GPUs, the fabric has 32"),
        (0, "job 'j' asks for 0 GPUs, expected at least 1"),
        (32, None),
    ],
)
def test_a_job_that_can_never_start_is_refused_in_one_line(gpus: int, reason: str | None) -> None:
    assert manager().refusal(EMPTY.structure, Waiting("j", gpus)) == reason


def test_a_placer_that_gives_too_few_gpus_is_named() -> None:
    class Half(FirstFree):
        def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
            return super().place(state, job, gpus // 2)

    with pytest.raises(ValueError, match="placer 'none' gave 2 GPUs, not 4"):
        Manager(FifoBackfill(), Gang(), Half(), Steady()).decide(EMPTY, jobs(4), Tick())


def test_a_policy_that_asks_for_no_gpus_is_told() -> None:
    with pytest.raises(ValueError, match="job 'j0': the policy asks for 0 GPUs, expected at least 1"):
        saying(PlacementRequest(jobs(1)[0], 0)).decide(EMPTY, [], Tick())


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([name for name in names("placer") if name != "locality"]),  # which waits for a local place
    st.lists(st.one_of(st.integers(1, 40), st.integers(1, 4).map(lambda hosts: 4 * hosts)), min_size=1, max_size=14),
    st.randoms(use_true_random=False),
)
def test_no_gpu_is_given_twice_and_a_gang_gets_all_or_nothing(placer: str, sizes: list[int], random: object) -> None:
    """`ClusterState.start` refuses a GPU that is taken; whoever fits has started when `decide` returns."""
    twins = manager(placer), manager(placer)
    state, waiting = EMPTY, list(jobs(*sizes))
    while waiting or state.running:
        actions = twins[0].decide(state, waiting, Tick())
        assert actions == twins[1].decide(state, waiting, Tick())
        for action in actions:
            assert isinstance(action, Start)
            assert len(action.gpus) == action.asked.gpus
            state = state.after(action)
        names_started = set(started(actions))
        waiting = [job for job in waiting if job.name not in names_started]
        assert all(job.gpus > state.free_gpus for job in waiting)
        if not state.running:
            break
        leaving = random.choice(sorted(state.running))  # type: ignore[attr-defined]
        assert manager(placer).decide(state.end(leaving), [], Ended(leaving)) == ()
        state = state.end(leaving)
    assert all(job.gpus > 32 for job in waiting)
    assert state.free_gpus == 32
