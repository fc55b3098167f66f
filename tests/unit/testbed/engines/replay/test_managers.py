"""Replays under managers that preempt, resize and pause: nothing is lost, and everything is accounted for."""

from __future__ import annotations

import pytest

from controller.schedulers.registry import create
from testbed.engines.replay.inputs import builder, reference_times, stage_times
from testbed.engines.replay.manager_adapter import ManagedPlacing
from testbed.engines.replay.outcome import Replayed
from testbed.engines.replay.replay import Replay
from testbed.engines.replay.running_job import ReplayRequest
from topologies.clos import clos
from workloads.managers.registry import manager, names

FABRIC = clos(hosts=4, gpus_per_host=4, nics_per_host=2, tors=4, aggregations=2, port_rate=100e9, fabric_rate=100e9)
SIZES = (1, 8, 2, 16, 4)
CROWD = [
    ReplayRequest(f"job{number}", 30.0 * number, 400.0 + 7 * number, SIZES[number % 5], "crux-bert", "ab"[number % 2])
    for number in range(15)
]


SHARING = ("muri-sharing", "packing")
GANGS = [name for name in names("policy") if name != "kubernetes"]


def replay(
    policy: str, requests: list[ReplayRequest] = CROWD, queue: str = "fifo-backfill", **options: object
) -> Replayed:
    managed = manager("consolidated", queue, policy, options={"policy": options})
    placing = ManagedPlacing(managed, FABRIC, stage_times(FABRIC))
    return Replay(FABRIC, create("crux"), placing, requests, builder(FABRIC), reference_s=reference_times(FABRIC)).run()


@pytest.mark.parametrize("policy", GANGS)
def test_every_job_ends_and_has_computed_what_it_had_to(policy: str) -> None:
    done = replay(policy)
    assert {job.name for job in done.jobs} == {request.name for request in CROWD}
    assert done.waiting == done.running == 0
    requested = {request.name: request for request in CROWD}
    for job in done.jobs:
        request = requested[job.name]
        share = stage_times(FABRIC)(request)[0] / reference_times(FABRIC)(request)
        assert job.busy_gpu_s == pytest.approx(share * job.alone_s * job.gpus, rel=1e-6)
        assert job.allocated_gpu_s >= job.busy_gpu_s * (1 - 1e-9)
    assert sum(job.busy_gpu_s for job in done.jobs) == pytest.approx(done.totals.busy, rel=1e-6)
    held = sum(job.allocated_gpu_s for job in done.jobs)
    if policy in SHARING:  # all jobs together have a GPU that several of them hold once
        assert done.totals.busy <= done.totals.allocated < held
    else:
        assert done.totals.allocated == pytest.approx(held, rel=1e-6)


def test_without_gangs_two_jobs_that_hold_what_both_need_wait_for_ever() -> None:
    requests = [ReplayRequest(f"job{number}", 10.0 * (number > 0), 100.0, 12, "crux-bert") for number in range(3)]
    assert replay("gang", requests).running == 0
    stuck = replay("kubernetes", requests)
    # The first has all it needs; the other two came together, and each has 8 of 12 when it has ended.
    assert [job.name for job in stuck.jobs if job.end_s is not None] == ["job0"]
    assert [job.holds for job in stuck.jobs if job.end_s is None] == [8, 8] and stuck.running == 2
    released = replay("kubernetes", requests, release_s=60.0)
    assert released.running == released.waiting == 0 and all(job.preemptions == 0 for job in released.jobs)


def test_preemption_costs_what_a_restart_takes() -> None:
    requests = [
        ReplayRequest("long", 0.0, 1000.0, 16, "crux-resnet"),
        ReplayRequest("short", 100.0, 50.0, 16, "crux-resnet"),
    ]
    free, paid = (
        {job.name: job for job in replay("srtf", requests, restart_s=restart_s).jobs} for restart_s in (0.0, 30.0)
    )
    assert free["long"].preemptions == paid["long"].preemptions == 1
    assert free["short"].end_s == pytest.approx(paid["short"].end_s)
    assert paid["long"].end_s - free["long"].end_s == pytest.approx(30.0)
    assert paid["long"].allocated_gpu_s - free["long"].allocated_gpu_s == pytest.approx(16 * 30.0)
    assert paid["long"].busy_gpu_s == pytest.approx(free["long"].busy_gpu_s)


def test_an_elastic_job_does_the_same_work_on_fewer_gpus() -> None:
    requests = [ReplayRequest(f"job{number}", 0.0, 3000.0 * (1 + number), 16, "crux-gpt") for number in range(2)]
    found = {job.name: job for job in replay("optimus", requests, restart_s=0.0).jobs}
    assert found["job1"].migrations >= 1  # it grows when the other has ended
    assert found["job1"].busy_gpu_s == pytest.approx(2 * found["job0"].busy_gpu_s, rel=1e-6)


@pytest.mark.parametrize("queue", names("queue"))
def test_every_queue_works_with_every_policy(queue: str) -> None:
    for policy in GANGS:
        assert replay(policy, CROWD[:8], queue).waiting == 0
