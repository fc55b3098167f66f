"""Jobs under a cluster manager, as an engine sees them: stints that start and stop. No engine here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.engines.common.managed_jobs import ManagedJobs
from testbed.experiment.experiment import JobFailures, Managed, Submission
from topologies.clos import clos
from workloads.build import JobSpec
from workloads.managers.catalogue import MANAGERS
from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event, PolicyAction, QueuedJob
from workloads.managers.policies.srtf import Srtf

FABRIC = clos(hosts=4, gpus_per_host=4, nics_per_host=2, tors=2, aggregations=2, port_rate=100e9, fabric_rate=200e9)
SHARING = ("gandiva", "muri-sharing", "packing")
SECOND = {"compute_s": 1.0, "communication_bytes": 0.0}


def submission(name: str, gpus: int, iterations: int, at_s: float = 0.0) -> Submission:
    return Submission(JobSpec(name, "bert", gpus, start_s=at_s, iterations=iterations, **SECOND))


def managed(*submissions: Submission, name: str = "consolidated", **options: Mapping[str, object]) -> Managed:
    parts = MANAGERS[name]
    return Managed(submissions, parts.queue, parts.policy, parts.placer, "steady", {**parts.options, **options})


class Clock:
    """Runs the stints without a network: an iteration takes a second, wherever it is."""

    def __init__(self, jobs: ManagedJobs, shared: bool = False) -> None:
        self.jobs, self.shared = jobs, shared
        self.now = 0.0
        self.began: dict[str, float] = {}
        self.wanted: dict[str, int] = {}
        self.gpus: dict[str, tuple[str, ...]] = {}
        self.held: dict[str, tuple[str, ...]] = {}
        self.done: dict[str, int] = {}

    def made(self, name: str) -> int:
        return min(self.wanted[name], int(max(0.0, self.now - self.began[name]) + 1e-9))

    def run(self, until_s: float = 1000.0) -> None:
        while self.jobs.unfinished and self.now < until_s:
            for name in [n for n, at in self.began.items() if at + self.wanted[n] <= self.now + 1e-9]:
                self._forget(name)
                self.jobs.ended(name, self.now)
            changes = self.jobs.decide(self.now, self.made)
            for name in changes.stopped:
                self._forget(name)
            for job in changes.started:
                self.began[job.name], self.wanted[job.name] = job.start_s, job.iterations
                taken = {gpu for gpus in self.gpus.values() for gpu in gpus}
                assert self.shared or taken.isdisjoint(job.gpus), "no GPU is given twice"
                self.gpus[job.name] = self.held[job.name] = job.gpus
            ends = [at + self.wanted[name] for name, at in self.began.items()]
            then = min([self.jobs.next_s(), *ends])
            if then == inf:
                return
            self.now = max(then, self.now)

    def _forget(self, name: str) -> None:
        self.done[name] = self.made(name)
        del self.began[name], self.wanted[name], self.gpus[name]


def test_a_job_that_fits_runs_at_once_and_ends_with_all_its_iterations() -> None:
    jobs = ManagedJobs(managed(submission("one", 8, 10, at_s=2.0)), FABRIC, 1)
    assert jobs.next_s() == 2.0
    clock = Clock(jobs)
    clock.run()
    (outcome,) = jobs.outcomes(clock.now)
    assert (outcome.start_s, outcome.end_s, outcome.held_s, outcome.allocated_gpu_s) == (2.0, 12.0, 10.0, 80.0)
    assert [job.name for job in jobs.stints] == ["one"]


def test_a_job_that_does_not_fit_waits_for_one_that_ends() -> None:
    clock = Clock(ManagedJobs(managed(submission("one", 12, 10), submission("two", 8, 5, at_s=1.0)), FABRIC, 1))
    clock.run()
    one, two = clock.jobs.outcomes(clock.now)
    assert (one.end_s, two.start_s, two.end_s) == (10.0, 10.0, 15.0)


def test_a_preempted_job_goes_on_in_another_stint_with_what_is_left() -> None:
    shortest = managed(submission("long", 16, 10), submission("short", 16, 2, at_s=3.5), name="srtf")
    clock = Clock(ManagedJobs(shortest, FABRIC, 1))
    clock.run()
    assert [(job.name, job.iterations) for job in clock.jobs.stints] == [("long", 10), ("short", 2), ("long@2", 7)]
    long, short = clock.jobs.outcomes(clock.now)
    assert (short.start_s, short.end_s) == (3.5, 5.5)
    assert long.end_s == 12.5  # the half iteration that the stop cut off is repeated
    assert (long.preemptions, long.held_s) == (1, 10.5)
    assert clock.jobs.stints_of() == {"long": ("long", "long@2"), "short": ("short",)}


def test_a_job_on_fewer_gpus_makes_more_iterations_of_the_same_work() -> None:
    both = (submission("a", 16, 8), submission("b", 16, 8, 2.0))
    clock = Clock(ManagedJobs(managed(*both, name="optimus", policy={"round_s": 4.0, "restart_s": 1.0}), FABRIC, 1))
    clock.run()
    assert {len(job.gpus) for job in clock.jobs.stints} != {16}
    for name, stints in clock.jobs.stints_of().items():
        lost = sum(len(clock.held[stint]) for stint in stints)  # at most the last iteration, rounded up on its GPUs
        assert 8 * 16 <= sum(clock.done[stint] * len(clock.held[stint]) for stint in stints) < 8 * 16 + lost, name


def test_no_two_stints_share_a_tcp_port_of_a_nic() -> None:
    clock = Clock(ManagedJobs(managed(submission("a", 16, 10), submission("b", 16, 2, 1.5), name="srtf"), FABRIC, 1))
    clock.run()
    ends = [(flow.source, flow.source_port) for job in clock.jobs.stints for flow in job.flows]
    assert len(ends) == len(set(ends))


def test_a_job_that_could_never_start_is_refused_with_the_reason_and_not_waited_for() -> None:
    jobs = ManagedJobs(managed(submission("huge", 17, 1), submission("one", 1, 1)), FABRIC, 1)
    clock = Clock(jobs)
    clock.run()
    assert jobs.unfinished == 0
    assert jobs.refused == {"huge": "job 'huge' asks for 17 GPUs, the fabric has 16"}


def test_a_job_of_higher_priority_and_of_a_gpu_type_gets_its_gpus_first() -> None:
    placer = {
        "virtual_clusters": {"a": {"V100": {"host": 1}, "A100": {"host": 2}}},
        "gpu_types": {"V100": ["h0"], "A100": ["h1", "h2", "h3"]},
    }
    asks = {"virtual_cluster": "a", "gpu_type": "V100"}
    low = replace(submission("low", 4, 20), **asks)
    high = replace(submission("high", 4, 5, 3.0), priority=1, **asks)
    clock = Clock(ManagedJobs(managed(low, high, name="hived", placer=placer), FABRIC, 1))
    clock.run()
    ended = {each.name: each.end_s for each in clock.jobs.outcomes(clock.now)}
    assert (ended["high"], ended["low"]) == (8.0, 25.0)


def test_pods_without_gangs_hold_gpus_and_wait_for_ever() -> None:
    clock = Clock(ManagedJobs(managed(submission("a", 12, 3), submission("b", 12, 3), name="kubernetes"), FABRIC, 1))
    clock.run(until_s=50.0)
    assert clock.jobs.stints == []
    assert sum(outcome.allocated_gpu_s for outcome in clock.jobs.outcomes(10.0)) == 160.0


@st.composite
def traces(draw: st.DrawFn) -> tuple[Submission, ...]:
    sizes = st.sampled_from([1, 2, 4, 8, 16])
    return tuple(
        submission(f"j{number}", draw(sizes), draw(st.integers(1, 12)), draw(st.integers(0, 12)) / 2)
        for number in range(draw(st.integers(1, 6)))
    )


@pytest.mark.parametrize("name", sorted(set(MANAGERS) - {"kubernetes"}))
@given(trace=traces())
@settings(max_examples=8, deadline=None)
def test_under_every_manager_every_job_ends_and_no_work_is_lost(name: str, trace: tuple[Submission, ...]) -> None:
    clock = Clock(ManagedJobs(managed(*trace, name=name), FABRIC, 1), MANAGERS[name].policy in SHARING)
    clock.run(until_s=5000.0)
    assert clock.jobs.unfinished == 0
    for outcome in clock.jobs.outcomes(clock.now):
        if outcome.name not in clock.jobs.refused:
            (asked,) = [each for each in trace if each.spec.name == outcome.name]
            assert outcome.allocated_gpu_s >= asked.spec.iterations * asked.gpus - 1e-6
            assert outcome.end_s is not None and outcome.end_s >= asked.spec.start_s


def with_failures(failures: JobFailures, count: int = 60) -> Clock:
    trace = tuple(submission(f"j{number}", 2 + 14 * (number % 2), 40, 5.0 * number) for number in range(count))
    clock = Clock(ManagedJobs(replace(managed(*trace), job_failures=failures), FABRIC, 1))
    clock.run(until_s=1e6)
    assert clock.jobs.unfinished == 0
    return clock


def test_jobs_that_fail_are_tried_again_from_the_beginning_up_to_a_limit() -> None:
    clock = with_failures(JobFailures(retries=2))
    outcomes = clock.jobs.outcomes(clock.now)
    failed = [each for each in outcomes if each.status == "unsuccessful"]
    assert 0.1 < len(failed) / len(outcomes) < 0.5  # 30.6 % are drawn
    assert all(each.attempts == 3 for each in failed)
    for each in outcomes:
        made = sum(clock.done[stint] for stint in clock.jobs.stints_of()[each.name])
        assert made == round(each.alone_s)  # an iteration takes a second, all attempts are made whole
        assert made >= 40 or each.status != "passed"


def test_no_manager_foresees_that_an_attempt_will_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []
    decide = Srtf.decide

    def looking(self: Srtf, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterable[PolicyAction]:
        for running in state.running.values():
            left_s = running.left_s(state.time_s)
            assert left_s is not None
            seen.append(left_s + state.time_s - running.since_s)
        return decide(self, state, queued, event)

    monkeypatch.setattr(Srtf, "decide", looking)
    jobs = [submission(f"job{number}", 1, 40, at_s=float(number)) for number in range(16)]
    failing = replace(managed(*jobs), policy="srtf", job_failures=JobFailures(retries=2))
    clock = Clock(ManagedJobs(failing, FABRIC, 1))
    clock.run()
    assert any(each.status != "passed" for each in clock.jobs.outcomes(clock.now))
    assert seen and set(seen) == {40.0}


def test_policies_against_failures_save_gpu_time_and_change_nobody_who_passes() -> None:
    def held(failures: JobFailures) -> tuple[float, float]:
        clock = with_failures(failures)
        outcomes = clock.jobs.outcomes(clock.now)
        passed = sum(each.allocated_gpu_s for each in outcomes if each.status == "passed")
        return passed, sum(each.allocated_gpu_s for each in outcomes) - passed

    plain, prerun, blacklist = held(JobFailures()), held(JobFailures(prerun=True)), held(JobFailures(blacklist=True))
    assert prerun[0] == blacklist[0] == plain[0]
    assert prerun[1] < plain[1] and blacklist[1] < plain[1]
    assert held(JobFailures(early_stop_at=0.4))[0] < 0.5 * plain[0]


def test_without_fates_every_job_passes_at_once() -> None:
    clock = Clock(ManagedJobs(managed(submission("one", 8, 10)), FABRIC, 1))
    clock.run()
    (outcome,) = clock.jobs.outcomes(clock.now)
    assert (outcome.status, outcome.attempts) == ("passed", 1)


def test_gpus_on_loan_of_a_slower_type_compute_as_long_as_they_need() -> None:
    lent = ["h2", "h3"]
    capacity = {"hosts": lent, "mean": 0.2, "swing": 0.1, "gpu_type": "T4", "speed": 0.5}
    asked = replace(managed(submission("a", 8, 4), submission("b", 4, 4), name="lyra"), capacity="inference")
    jobs = ManagedJobs(replace(asked, options={"capacity": capacity}), FABRIC, 1)
    Clock(jobs).run()
    by_name = {stint.name: stint for stint in jobs.stints}
    assert {gpu[:2] for gpu in by_name["b"].gpus} <= set(lent)
    assert (by_name["a"].compute_s, by_name["b"].compute_s) == (1.0, 2.0)
