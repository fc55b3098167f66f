"""Replays of small traces on a small fabric: closed forms, bookkeeping, and the jump against every iteration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.schedulers.registry import create
from testbed.engines.replay.exact_steps import step_exactly
from testbed.engines.replay.inputs import TraceJobs
from testbed.engines.replay.manager_adapter import ManagedPlacing
from testbed.engines.replay.outcome import Replayed, Series
from testbed.engines.replay.replay import Replay
from testbed.engines.replay.running_job import ReplayRequest
from testbed.errors import RunFailedError
from testbed.fluid.fluids import Contention
from topologies.clos import clos
from workloads.managers.registry import manager

FABRIC = clos(hosts=4, gpus_per_host=4, nics_per_host=2, tors=4, aggregations=2, port_rate=100e9, fabric_rate=100e9)


def replay(requests: Sequence[ReplayRequest], scheduler: str = "ecmp", placer: str = "none", **values: Any) -> Replayed:
    placing = ManagedPlacing(manager(placer), FABRIC, TraceJobs(FABRIC).stage_times)
    return Replay(FABRIC, create(scheduler), placing, requests, TraceJobs(FABRIC).build, **values).run()


def request(name: str, submit_s: float, duration_s: float, gpus: int, model: str = "crux-bert") -> ReplayRequest:
    return ReplayRequest(name, submit_s, duration_s, gpus, model)


def outcome(done: Replayed, name: str) -> Any:
    (found,) = [job for job in done.jobs if job.name == name]
    return found


def test_a_job_without_contention_takes_its_recorded_time() -> None:
    done = replay([request("one", 5.0, 1000.0, 4)])
    assert (outcome(done, "one").start_s, outcome(done, "one").end_s) == (5.0, pytest.approx(1005.0))
    assert done.gpu_utilization == pytest.approx(1.0)


def test_a_job_waits_until_enough_gpus_are_free() -> None:
    done = replay([request("one", 0.0, 100.0, 16, "crux-resnet"), request("two", 10.0, 50.0, 4)])
    assert outcome(done, "two").start_s == pytest.approx(outcome(done, "one").end_s)


def test_jobs_that_meet_take_longer_and_their_gpus_wait() -> None:
    requests = [request("one", 0.0, 1000.0, 8), request("two", 0.0, 1000.0, 8)]
    alone = [replay([each]).gpu_utilization for each in requests]
    # "none" gives both whole hosts; on one path per pair of ToRs their rings meet for some seed.
    met = min(replay(requests, seed=seed).gpu_utilization for seed in range(1, 9))
    assert met <= min(alone) + 1e-9
    assert all(job.end_s - job.start_s >= 1000.0 - 1e-6 for job in replay(requests).jobs)


@pytest.mark.parametrize(("gpus", "share"), [(5, 2.0), (6, 0.0)])
def test_jobs_with_a_gpu_each_behind_one_nic_share_its_pcie_link(gpus: int, share: float) -> None:
    done = replay([request("one", 0.0, 1000.0, gpus), request("two", 0.0, 1000.0, gpus)])  # two GPUs behind a NIC
    series = dict(zip(done.series.columns, done.series.means().T, strict=True))
    both = series["jobs"] == 2.0
    assert both.any() and (series["sharing_pcie_jobs"][both] == share).all()
    assert (series["sharing_pcie_jobs"] <= series["sharing_jobs"]).all()


def seed_at_which_they_meet(requests: Sequence[ReplayRequest]) -> int:
    (seed, *_others) = [seed for seed in range(1, 9) if replay(requests, seed=seed).totals.settled]
    return seed


def test_busy_and_allocated_time_add_up_over_the_jobs() -> None:
    requests = [request(f"job{number}", 40.0 * number, 300.0 + number, 2 ** (number % 4)) for number in range(12)]
    done = replay(requests, "crux")
    assert sum(job.busy_gpu_s for job in done.jobs) == pytest.approx(done.totals.busy, rel=1e-6)
    assert sum(job.allocated_gpu_s for job in done.jobs) == pytest.approx(done.totals.allocated, rel=1e-6)
    assert len(done.jobs) == 12 and done.waiting == done.running == 0


def test_what_has_not_ended_by_the_end_is_counted_as_running_or_waiting() -> None:
    requests = [request("one", 0.0, 500.0, 16), request("two", 1.0, 500.0, 16), request("late", 200.0, 1.0, 1)]
    done = replay(requests, until_s=100.0)
    assert (done.running, done.waiting, done.span_s) == (1, 1, 100.0)
    assert outcome(done, "one").end_s is None
    assert done.totals.allocated == pytest.approx(1600.0)


def test_the_jump_gives_the_same_utilisation_as_stepping_through_every_iteration() -> None:
    requests = [
        request(f"job{n}", 25.0 * n, 200.0, (8, 4, 6, 2)[n % 4], ("crux-bert", "crux-gpt")[n % 2]) for n in range(10)
    ]
    jumped, stepped = (replay(requests, "crux", jump=jump, until_s=400.0).gpu_utilization for jump in (True, False))
    assert jumped == pytest.approx(stepped, abs=0.01)


@pytest.mark.parametrize("scheduler", ["sincronia", "taccl-star", "cassini", "crux-pa", "crux-ps-pa", "crux", "hedera"])
def test_every_scheduler_of_the_trace_evaluation_replays(scheduler: str) -> None:
    requests = [request(f"job{number}", 10.0 * number, 200.0, 6) for number in range(5)]
    done = replay(requests, scheduler)
    assert 0.2 < done.gpu_utilization <= 1.0 + 1e-9
    assert all(job.end_s is not None for job in done.jobs)


def test_a_scheduler_that_paces_senders_is_refused_by_name() -> None:
    with pytest.raises(RunFailedError, match="varys paces or counts bytes"):
        replay([request("one", 0.0, 100.0, 8)], "varys")


def test_the_same_trace_gives_the_same_replay() -> None:
    requests = [request(f"job{number}", 7.0 * number, 100.0, 6) for number in range(6)]
    first, second = replay(requests, "crux"), replay(requests, "crux")
    assert first.jobs == second.jobs and (first.series.means() == second.series.means()).all()


def test_a_job_that_could_never_start_is_refused_and_the_others_go_on() -> None:
    placing = ManagedPlacing(manager("none"), FABRIC, TraceJobs(FABRIC).stage_times)
    requests = [request("huge", 0.0, 10.0, 17), request("one", 1.0, 10.0, 4)]
    done = Replay(FABRIC, create("ecmp"), placing, requests, TraceJobs(FABRIC).build).run()
    assert placing.refused == {"huge": "job 'huge' asks for 17 GPUs, the fabric has 16"}
    assert [job.name for job in done.jobs] == ["one"]
    assert done.refused == placing.refused
    assert done.notes == ("jobs that could never start: 1; job 'huge' asks for 17 GPUs, the fabric has 16",)


@pytest.mark.parametrize("jump", [True, False])
def test_a_job_shorter_than_rounding_late_in_a_trace_ends(jump: bool) -> None:
    late = [request(f"job{number}", 1e6 + 0.1 * number, 1e-4 * (1 + number), 2 + number) for number in range(6)]
    done = replay([request("long", 0.0, 2e6, 4), *late], jump=jump, until_s=1.1e6)
    assert [job.name for job in done.jobs if job.end_s is None] == ["long"]


def test_a_group_without_time_to_step_has_no_rates_and_stays_where_it_is() -> None:
    requests = [request("one", 0.0, 100.0, 8)]
    placing = ManagedPlacing(manager("none"), FABRIC, TraceJobs(FABRIC).stage_times)
    stepping = Replay(FABRIC, create("ecmp"), placing, requests, TraceJobs(FABRIC).build, jump=False, until_s=10.0)
    stepping.run()
    before = stepping._running["one"].state
    assert step_exactly(stepping._running, stepping._users, 1e-9) == ({}, 1e-9)  # not nan, of no time
    assert stepping._running["one"].state == before is not None


@given(st.lists(st.tuples(st.floats(0.1, 500.0), st.floats(0.0, 10.0)), min_size=1, max_size=20))
@settings(max_examples=50, deadline=None)
def test_bins_hold_what_was_added_wherever_steps_begin_and_end(steps: list[tuple[float, float]]) -> None:
    series, now, total = Series(60.0, ("value",)), 0.0, 0.0
    for length, value in steps:
        series.add(now, now + length, [value])
        now, total = now + length, total + length * value
    assert float(series.means().sum()) * 60.0 == pytest.approx(total, rel=1e-9, abs=1e-9)


def test_a_group_is_made_into_arrays_once_while_nobody_in_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = [request("one", 0.0, 1000.0, 6), request("two", 0.0, 1000.0, 6)]
    passers_by = [request(f"short {start}", start, 0.3, 1, "crux-resnet") for start in (0.5, 1.5, 2.5)]
    seed = seed_at_which_they_meet(pair)
    made: list[int] = []
    arrays_of = Contention.of
    monkeypatch.setattr(Contention, "of", lambda jobs, *loads: (made.append(len(jobs)), arrays_of(jobs, *loads))[1])
    replay([*pair, *passers_by], jump=False, seed=seed)
    assert made.count(2) == 2, "once for its long-run rates, once to step through it"
