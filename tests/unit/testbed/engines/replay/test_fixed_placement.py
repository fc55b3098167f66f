"""Placement recorded in one replay and played in another."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.schedulers.registry import create
from testbed.engines.replay.fixed_placement import RecordingPlacing, recorded_manager
from testbed.engines.replay.inputs import TraceJobs
from testbed.engines.replay.manager_adapter import ManagedPlacing
from testbed.engines.replay.outcome import Replayed
from testbed.engines.replay.replay import Replay
from testbed.engines.replay.running_job import ReplayRequest
from testbed.errors import RunFailedError
from topologies.clos import clos
from workloads.managers.catalogue import named_manager
from workloads.managers.policies.recorded import Recorded, RecordedStart

FABRIC = clos(hosts=4, gpus_per_host=4, nics_per_host=2, tors=4, aggregations=2, port_rate=100e9, fabric_rate=100e9)
SIZES = (8, 4, 6, 2)
MODELS = ("crux-bert", "crux-gpt")
REQUESTS = [ReplayRequest(f"job{n}", 25.0 * n, 200.0 + 10 * (n % 3), SIZES[n % 4], MODELS[n % 2]) for n in range(12)]


def replay(placing: ManagedPlacing, requests: list[ReplayRequest] = REQUESTS, jump: bool = True) -> Replayed:
    return Replay(FABRIC, create("crux"), placing, requests, TraceJobs(FABRIC).build, jump=jump).run()


def recording(manager: str = "none") -> RecordingPlacing:
    return RecordingPlacing(named_manager(manager), FABRIC, TraceJobs(FABRIC).stage_times)


def played(starts: tuple[RecordedStart, ...]) -> RecordingPlacing:
    """A placing that plays ``starts`` and records what comes of it."""
    return RecordingPlacing(recorded_manager(starts), FABRIC, TraceJobs(FABRIC).stage_times)


def test_a_replay_at_its_own_recorded_placement_has_the_same_starts_and_utilisation() -> None:
    first = recording()
    free = replay(first)
    second = played(first.starts)
    fixed = replay(second)
    assert [(each.job, each.gpus) for each in second.starts] == [(each.job, each.gpus) for each in first.starts]
    assert [each.time_s for each in second.starts] == pytest.approx([each.time_s for each in first.starts], abs=1.0)
    assert fixed.gpu_utilization == pytest.approx(free.gpu_utilization, abs=0.002)


def test_stepping_through_at_a_fixed_placement_gives_the_utilisation_of_the_jump() -> None:
    placing = recording()
    jumped = replay(placing).gpu_utilization
    stepped = replay(played(placing.starts), jump=False).gpu_utilization
    assert jumped == pytest.approx(stepped, abs=0.005)


def test_gpus_go_from_job_to_job_in_the_recorded_order_however_long_each_takes() -> None:
    all_gpus = FABRIC.gpus
    starts = (RecordedStart("one", 0.0, all_gpus), RecordedStart("two", 100.0, all_gpus[:8]))
    requests = [ReplayRequest("one", 0.0, 150.0, 16, "crux-resnet"), ReplayRequest("two", 1.0, 50.0, 8, "crux-resnet")]
    jobs = {job.name: job for job in replay(played(starts), requests).jobs}
    assert jobs["two"].start_s == pytest.approx(jobs["one"].end_s)
    late = (RecordedStart("one", 0.0, all_gpus), RecordedStart("two", 400.0, all_gpus[:8]))
    jobs = {job.name: job for job in replay(played(late), requests).jobs}
    assert jobs["two"].start_s == 400.0


def test_a_manager_that_preempts_cannot_be_recorded() -> None:
    long = [
        ReplayRequest("long", 0.0, 9000.0, 16, "crux-resnet"),
        ReplayRequest("short", 10.0, 60.0, 16, "crux-resnet"),
    ]
    with pytest.raises(
        RunFailedError, match="jobs that keep their GPUs to the end: the manager gave the action 'preempt'"
    ):
        replay(recording("srtf"), long)


def test_attempts_that_fail_are_recorded_and_played_each_where_it_was() -> None:
    requests = [replace(each, attempts=1 + place % 3) for place, each in enumerate(REQUESTS)]
    first = recording()
    jumped = replay(first, requests)
    assert len(first.starts) == sum(each.attempts for each in requests)
    second = played(first.starts)
    stepped = replay(second, requests, jump=False)
    assert {(each.job, each.attempts): each.gpus for each in second.starts} == {
        (each.job, each.attempts): each.gpus for each in first.starts
    }
    assert all(job.end_s is not None for job in stepped.jobs)
    assert stepped.gpu_utilization == pytest.approx(jumped.gpu_utilization, abs=0.005)


def test_gpus_wait_for_a_recorded_attempt_whose_predecessor_has_not_failed_yet() -> None:
    all_gpus = FABRIC.gpus
    starts = (
        RecordedStart("one", 0.0, all_gpus),
        RecordedStart("one", 50.0, all_gpus, attempts=1),
        RecordedStart("two", 100.0, all_gpus),
    )
    one = ReplayRequest("one", 0.0, 300.0, 16, "crux-resnet", attempts=2)
    placing = played(starts)
    replay(placing, [one, ReplayRequest("two", 1.0, 50.0, 16, "crux-resnet")])
    assert [(each.job, each.attempts) for each in placing.starts] == [("one", 0), ("one", 1), ("two", 0)]


def test_a_job_with_two_recorded_starts_is_refused() -> None:
    with pytest.raises(ValueError, match="job 'one' has several recorded starts"):
        Recorded([RecordedStart("one", 0.0, ("a",)), RecordedStart("one", 5.0, ("b",))])


@given(
    st.lists(st.tuples(st.floats(0.0, 500.0), st.floats(10.0, 300.0), st.sampled_from(SIZES)), min_size=1, max_size=8)
)
@settings(max_examples=15, deadline=None)
def test_whatever_the_jobs_the_recorded_placement_is_played_and_all_jobs_end(
    drawn: list[tuple[float, float, int]],
) -> None:
    requests = [ReplayRequest(f"job{n}", *each, "crux-bert") for n, each in enumerate(sorted(drawn))]
    first = recording()
    replay(first, requests)
    second = played(first.starts)
    done = replay(second, requests, jump=False)
    assert {each.job: each.gpus for each in second.starts} == {each.job: each.gpus for each in first.starts}
    assert all(job.end_s is not None for job in done.jobs) and len(done.jobs) == len(requests)
