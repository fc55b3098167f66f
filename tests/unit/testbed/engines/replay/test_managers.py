"""Replays under managers that preempt, resize and pause: nothing is lost, and everything is accounted for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf

import pytest

from controller.schedulers.registry import create
from testbed.engines.replay.inputs import TraceJobs, requests_of
from testbed.engines.replay.manager_adapter import ManagedPlacing
from testbed.engines.replay.outcome import Replayed
from testbed.engines.replay.replay import Replay
from testbed.engines.replay.running_job import ReplayRequest
from testbed.engines.replay.unused_mechanisms import JobInputs
from topologies.clos import clos
from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event, PlacementRequest, QueuedJob
from workloads.managers.jobs import Waiting
from workloads.managers.policies.gang import Gang
from workloads.managers.registry import manager, names
from workloads.traces.trace import Trace, TraceJob

FABRIC = clos(hosts=4, gpus_per_host=4, nics_per_host=2, tors=4, aggregations=2, port_rate=100e9, fabric_rate=100e9)
JOBS = TraceJobs(FABRIC)
SIZES = (1, 8, 2, 16, 4)
CROWD = [
    ReplayRequest(f"job{number}", 30.0 * number, 400.0 + 7 * number, SIZES[number % 5], "crux-bert", "ab"[number % 2])
    for number in range(15)
]

ELASTIC = replace(CROWD[0], min_gpus=1, max_gpus=2)
SHARING = ("gandiva", "muri-sharing", "packing")
GANGS = [name for name in names("policy") if name != "kubernetes"]


def replay(
    policy: str,
    requests: list[ReplayRequest] = CROWD,
    queue: str = "fifo-backfill",
    until_s: float = inf,
    **options: object,
) -> Replayed:
    managed = manager("consolidated", queue, policy, options={"policy": options})
    placing = ManagedPlacing(managed, FABRIC, JOBS.stage_times)
    return Replay(
        FABRIC, create("crux"), placing, requests, JOBS.build, until_s=until_s, reference_s=JOBS.reference_s
    ).run()


@pytest.mark.parametrize("policy", GANGS)
def test_every_job_ends_and_has_computed_what_it_had_to(policy: str) -> None:
    done = replay(policy)
    assert {job.name for job in done.jobs} == {request.name for request in CROWD}
    assert done.waiting == done.running == 0
    requested = {request.name: request for request in CROWD}
    for job in done.jobs:
        request = requested[job.name]
        share = JOBS.stage_times(request)[0] / JOBS.reference_s(request)
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
    assert stuck.notes == ("at the end jobs hold some of their GPUs and wait for the rest: job1 8 of 12, job2 8 of 12",)
    released = replay("kubernetes", requests, release_s=60.0)
    assert released.notes == ()
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


def test_a_job_that_fails_waits_and_runs_again_from_the_beginning() -> None:
    requests = [
        ReplayRequest("fails", 0.0, 300.0, 16, "crux-resnet", attempts=3, status="unsuccessful"),
        ReplayRequest("other", 50.0, 40.0, 16, "crux-resnet"),
    ]
    found = {job.name: job for job in replay("gang", requests).jobs}
    # Each attempt takes 100 s; the other job was submitted in the first one, and is before it in the queue then.
    assert found["other"].start_s == pytest.approx(100.0)
    assert found["fails"].end_s == pytest.approx(340.0)
    assert (found["fails"].status, found["fails"].attempts) == ("unsuccessful", 3)
    assert (found["other"].status, found["other"].attempts) == ("passed", 1)
    busy = JOBS.stage_times(requests[0])[0] / JOBS.reference_s(requests[0])
    assert found["fails"].busy_gpu_s == pytest.approx(busy * 300.0 * 16, rel=1e-6)


def test_a_failed_attempt_counts_where_the_replay_ends_before_the_next_one() -> None:
    requests = [
        ReplayRequest("fails", 0.0, 300.0, 16, "crux-resnet", attempts=3),
        ReplayRequest("other", 50.0, 40.0, 16, "crux-resnet"),
    ]
    done = replay("gang", requests, until_s=120.0)
    found = {job.name: job for job in done.jobs}
    assert (found["fails"].end_s, found["fails"].attempts, done.running, done.waiting) == (None, 2, 1, 1)
    assert found["fails"].allocated_gpu_s == pytest.approx(1600.0)
    assert sum(job.busy_gpu_s for job in done.jobs) == pytest.approx(done.totals.busy, rel=1e-6)
    assert sum(job.allocated_gpu_s for job in done.jobs) == pytest.approx(done.totals.allocated, rel=1e-6)


def test_gpus_that_jobs_share_are_allocated_once_also_while_one_of_them_pauses() -> None:
    requests = [
        ReplayRequest("one", 0.0, 400.0, 16, "crux-bert"),
        ReplayRequest("two", 100.0, 400.0, 16, "crux-bert"),
    ]
    done = replay("muri-sharing", requests, restart_s=30.0, resources=["compute", "network"])
    starts = {job.name: job.start_s for job in done.jobs}
    assert starts["two"] < min(job.end_s for job in done.jobs), "they share"
    assert done.totals.allocated == pytest.approx(16 * done.span_s)


def test_an_elastic_job_of_a_trace_grows_and_shrinks_under_lyra() -> None:
    elastic = ReplayRequest("elastic", 0.0, 1000.0, 8, "crux-resnet", min_gpus=4, max_gpus=16)
    other = ReplayRequest("other", 200.0, 100.0, 12, "crux-resnet")
    found = {job.name: job for job in replay("lyra", [elastic, other]).jobs}
    assert found["other"].start_s == pytest.approx(200.0)  # the elastic job gives back what it can do without
    assert found["elastic"].end_s < 1000.0
    assert found["elastic"].preemptions == 0 and found["elastic"].migrations >= 2


def test_an_elastic_job_that_fails_starts_again_and_grows_in_one_decision() -> None:
    fails = ReplayRequest("fails", 5.0, 60.0, 1, "crux-resnet", min_gpus=1, max_gpus=2, attempts=3)
    (job,) = replay("grow-shrink", [fails]).jobs
    assert (job.attempts, job.end_s is not None) == (3, True)
    busy = JOBS.stage_times(fails)[0] / JOBS.reference_s(fails)
    assert job.busy_gpu_s == pytest.approx(busy * 60.0, rel=1e-6)


def test_an_opportunistic_job_of_a_trace_leaves_when_another_needs_its_gpus() -> None:
    requests = [
        ReplayRequest("guest", 0.0, 500.0, 16, "crux-resnet", opportunistic=True),
        ReplayRequest("owner", 100.0, 50.0, 16, "crux-resnet"),
    ]
    found = {job.name: job for job in replay("guarantee", requests).jobs}
    assert found["owner"].start_s == pytest.approx(100.0)
    assert found["guest"].preemptions == 1


def test_a_mechanism_without_input_in_the_trace_is_named_in_a_line() -> None:
    loans = "lyra: the capacity never lends hosts, so borrowing them does nothing"
    said = "lyra: no job is elastic (min_gpus, max_gpus), so scaling in and out does nothing"
    assert replay("lyra").notes == (said, loans)
    assert replay("lyra", [ELASTIC]).notes == (loans,)
    assert replay("guarantee").notes == ("guarantee: no job is opportunistic, so their use of idle GPUs does nothing",)
    assert replay("gang", queue="priority").notes == (
        "priority: all jobs have the same priority, so preemption inside virtual clusters does nothing",
    )
    assert replay("muri-sharing", CROWD[:2]).notes[-1] == (
        "muri-sharing: no job has profiles of storage and preprocessing, so interleaving storage and preprocessing "
        "does nothing"
    )
    assert replay("muri-sharing", CROWD[1:5], resources=["compute", "network"]).notes == ()


def notes(policy: str, *jobs: Waiting, placer: str = "consolidated", **options: object) -> tuple[str, ...]:
    inputs = JobInputs()
    for job in jobs:
        inputs.add(job)
    return inputs.notes(manager(placer, policy=policy, options={"policy": options}))


def test_jobs_without_stages_leave_optimus_and_muri_without_what_they_know() -> None:
    assert notes("optimus", Waiting("job", 4)) == (
        "optimus: no job has stages or measured steps, so knowing their speeds (they are taken to scale "
        "perfectly) does nothing",
    )
    assert notes("optimus", Waiting("job", 4), speeds="measured") == ()
    assert notes("gang", Waiting("job", 4), placer="muri") == (
        "muri: no job has compute and communication times, so choosing who shares uplinks does nothing",
    )


def test_models_of_unknown_skew_leave_the_placer_skew_without_input() -> None:
    unknown, known = Waiting("job", 4, model="own"), Waiting("job", 4, model="vgg16")
    assert notes("gang", unknown, placer="skew") == (
        "skew: no job has a model whose skew is known, so consolidating those of skewed models does nothing",
    )
    assert notes("gang", unknown, known, placer="skew") == ()


def test_what_jobs_say_and_no_part_of_the_manager_uses_is_named_in_a_line() -> None:
    guest = replace(CROWD[0], opportunistic=True)
    elastic_said = "jobs are elastic (min_gpus, max_gpus), and no part of the manager uses that: they keep their size"
    assert replay("gang", [ELASTIC]).notes == (elastic_said,)
    assert replay("lyra", [ELASTIC], elastic=False).notes[-1] == elastic_said
    assert replay("gang", [guest]).notes == (
        "jobs are opportunistic, and no part of the manager uses that: they count as any other",
    )
    assert all(replay(policy, [ELASTIC]).notes == () for policy in ("optimus", "grow-shrink"))
    assert replay("guarantee", [guest]).notes == ()


def test_hived_without_quotas_says_that_it_ignores_virtual_clusters() -> None:
    jobs = [Waiting("one", 1, virtual_cluster="a"), Waiting("two", 1, virtual_cluster="b")]
    said = "hived: without quotas (option virtual_clusters) it ignores the virtual clusters of jobs"
    assert notes("gang", *jobs, placer="hived") == (said,)
    inputs = JobInputs()
    for job in jobs:
        inputs.add(job)
    with_quotas = manager("hived", options={"placer": {"virtual_clusters": {"a": {"host": 1}}}})
    assert inputs.notes(with_quotas) == notes("gang", jobs[0], placer="hived") == ()


def test_what_a_trace_says_of_a_job_reaches_the_replay() -> None:
    job = TraceJob("a", 0.0, 90.0, 4, fate="kill", attempts=3, min_gpus=2, max_gpus=8, opportunistic=True)
    (request,) = requests_of(Trace("t", (job,), {}), 1)
    assert (request.min_gpus, request.max_gpus, request.opportunistic) == (2, 8, True)
    assert (request.status, request.attempts, request.attempt_s) == ("killed", 3, 30.0)


def test_a_manager_knows_what_a_job_inside_a_host_would_send_on_more_gpus() -> None:
    seen: list[Waiting] = []

    class Sees(Gang):
        def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterable[PlacementRequest]:
            seen.extend(entry.job for entry in queued)
            return super().decide(state, queued, event)

    managed = replace(manager(), policy=Sees())
    placing = ManagedPlacing(managed, FABRIC, JOBS.stage_times)
    requests = [ReplayRequest("one", 0.0, 9.0, 1, "crux-bert"), ReplayRequest("eight", 0.0, 9.0, 8, "crux-bert")]
    Replay(FABRIC, create("crux"), placing, requests, JOBS.build, reference_s=JOBS.reference_s).run()
    one, eight = seen[:2]
    assert one.communication_s == 0.0 and one.ring == (8, eight.communication_s)
    assert eight.communication_s > 0.0 and eight.ring is None


@pytest.mark.parametrize("queue", names("queue"))
def test_every_queue_works_with_every_policy(queue: str) -> None:
    for policy in GANGS:
        assert replay(policy, CROWD[:8], queue).waiting == 0
