"""The table of live jobs: who is there, who is through, and of whom a profile is due."""

from __future__ import annotations

import pytest

from controller.dataplane.planner import FlowChange
from testbed.api import prepare
from testbed.engines.common.live_jobs import LiveJobs
from testbed.engines.common.profiling import ITERATIONS
from workloads.analysis import isolated
from workloads.iteration.protocol import IterationEnded, PhaseTimes

EXPERIMENT = prepare("hello").experiments[0]
FIRST, SECOND = EXPERIMENT.jobs
HOSTS = sorted({EXPERIMENT.fabric.host_of_gpu[gpu] for gpu in FIRST.gpus})


@pytest.fixture
def jobs() -> LiveJobs:
    found = LiveJobs(EXPERIMENT)
    found.arrive(FIRST)
    return found


def end(jobs: LiveJobs, host: str, iteration: int, job: str = FIRST.name) -> None:
    times = PhaseTimes(iteration, iteration + 0.5, iteration + 1, iteration + 1, (0.5,))
    jobs.iteration_ended(host, IterationEnded(job, iteration, (times,), 0.001, 0.25))


def test_a_job_that_has_not_begun_is_present_and_neither_runs_nor_is_through(jobs: LiveJobs) -> None:
    assert jobs.present_jobs() == [FIRST]
    assert jobs.running() == jobs.finished() == []
    assert jobs.completed(FIRST.name) == jobs.completed("nobody") == 0
    live = jobs.begin(FIRST.name, 7.0)
    assert jobs.running() == [live] and live.began == 7.0


def test_an_iteration_is_made_when_every_host_has_ended_it(jobs: LiveJobs) -> None:
    jobs.begin(FIRST.name, 0.0)
    end(jobs, HOSTS[0], 0)
    assert jobs.completed(FIRST.name) == 0
    for host in HOSTS[1:]:
        end(jobs, host, 0)
    assert jobs.completed(FIRST.name) == 1


def test_a_report_names_the_gpus_of_its_host_in_the_order_of_the_job(jobs: LiveJobs) -> None:
    jobs.begin(FIRST.name, 0.0)
    end(jobs, HOSTS[0], 0)
    (report,) = jobs.reports
    assert report.gpus == tuple(gpu for gpu in FIRST.gpus if EXPERIMENT.fabric.host_of_gpu[gpu] == HOSTS[0])
    assert (report.host, report.late, report.waited) == (HOSTS[0], 0.001, 0.25)


def test_a_job_that_is_through_is_taken_once_and_leaves_the_others(jobs: LiveJobs) -> None:
    jobs.arrive(SECOND)
    for job in (FIRST, SECOND):
        jobs.begin(job.name, 0.0)
    for host in HOSTS:
        end(jobs, host, FIRST.iterations - 1)
    (live,) = jobs.finished()
    assert jobs.take_finished() == [live] and live.ended
    assert jobs.take_finished() == jobs.finished() == []
    assert jobs.present_jobs() == [SECOND] and list(jobs) == [FIRST.name, SECOND.name]


def test_a_profile_is_due_once_and_never_before_enough_iterations(jobs: LiveJobs) -> None:
    jobs.begin(FIRST.name, 0.0)
    for iteration in range(ITERATIONS + 1):
        assert jobs.profiles_due(lambda: []) == []
        for host in HOSTS:
            end(jobs, host, iteration)
    assert jobs.profiles_due(lambda: []) == [(jobs[FIRST.name], 1)]
    assert jobs.profiles_due(lambda: []) == [] and jobs.profile_due(jobs[FIRST.name]) is None


def test_a_profile_begins_after_a_disturbed_iteration(jobs: LiveJobs) -> None:
    jobs.begin(FIRST.name, 0.0)
    for iteration in range(ITERATIONS + 3):
        for host in HOSTS:
            end(jobs, host, iteration)
    assert jobs.profiles_due(lambda: [(2.2, 2.4)]) == [(jobs[FIRST.name], 3)]


def test_who_has_left_is_not_asked_when_the_run_was_disturbed(jobs: LiveJobs) -> None:
    jobs.begin(FIRST.name, 0.0).ended = True
    assert jobs.profiles_due(lambda: pytest.fail("nobody waits")) == []


def test_a_job_in_its_first_iteration_loses_throughput_with_every_second_beyond_what_it_takes_alone(
    jobs: LiveJobs,
) -> None:
    alone_s = isolated(FIRST, EXPERIMENT.fabric).iteration_s * EXPERIMENT.scale.time
    assert jobs.recent_throughput(100.0) == {}  # it has not begun
    jobs.begin(FIRST.name, 7.0)
    assert jobs.recent_throughput(7.0 + alone_s / 2) == {}
    assert jobs.recent_throughput(7.0 + 10 * alone_s)[FIRST.name] == pytest.approx(0.1)


def test_a_long_iteration_counts_in_throughput_before_it_has_ended(jobs: LiveJobs) -> None:
    alone_s = isolated(FIRST, EXPERIMENT.fabric).iteration_s * EXPERIMENT.scale.time
    jobs.begin(FIRST.name, 0.0)
    for host in HOSTS:
        end(jobs, host, 0)  # in a second
    assert jobs.recent_throughput(2.0)[FIRST.name] == pytest.approx(alone_s)
    assert jobs.recent_throughput(20.0)[FIRST.name] == pytest.approx(alone_s / 10)


def test_flows_of_a_job_that_has_left_are_not_changed_any_more(jobs: LiveJobs) -> None:
    jobs.arrive(SECOND)
    first, second = (FlowChange(job.flows[0].id, path_changed=False, level_changed=True) for job in (FIRST, SECOND))
    assert jobs.still_there([first, second]) == [first, second]
    jobs[FIRST.name].ended = True
    assert jobs.still_there([first, second]) == [second]
