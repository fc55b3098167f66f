"""Elastic jobs and retries are drawn for traces that record none, with the shares that Lyra's authors publish."""

from __future__ import annotations

import pytest

from workloads.traces.job_failures import with_retries
from workloads.traces.synthetic import lingjun_like, with_elastic_jobs
from workloads.traces.trace import Trace, TraceJob

TRACE = lingjun_like(1)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_five_percent_of_the_jobs_are_elastic_and_have_36_percent_of_the_gpu_time(seed: int) -> None:
    trace = with_elastic_jobs(TRACE, seed)
    elastic = [job for job in trace.jobs if job.elastic]
    assert len(elastic) == pytest.approx(0.05 * len(trace.jobs), abs=2)
    share = sum(job.gpu_seconds for job in elastic) / sum(job.gpu_seconds for job in trace.jobs)
    assert share == pytest.approx(0.36, abs=0.04)


def test_a_seed_draws_the_same_jobs_and_the_trace_says_so() -> None:
    assert with_elastic_jobs(TRACE, 1) == with_elastic_jobs(TRACE, 1)
    assert with_elastic_jobs(TRACE, 1).jobs != with_elastic_jobs(TRACE, 2).jobs
    assert with_elastic_jobs(TRACE, 1).notes[-1].startswith("elastic jobs are drawn: ")
    assert lingjun_like(1, elastic_jobs=0.05) == with_elastic_jobs(TRACE, 1, most=2000)


def test_an_elastic_job_takes_half_to_twice_its_gpus_and_no_more_than_there_are() -> None:
    jobs = tuple(TraceJob(f"j{gpus}", 0.0, 1.0, gpus) for gpus in (1, 8, 60))
    trace = with_elastic_jobs(Trace("t", jobs, {}), 1, jobs=1.0, gpu_time=1.0, most=64)
    assert [(job.min_gpus, job.max_gpus) for job in trace.jobs] == [(1, 2), (4, 16), (30, 64)]


def test_a_failed_job_is_tried_again_and_takes_as_long_each_time() -> None:
    jobs = (
        TraceJob("a", 0.0, 10.0, 1, fate="fail"),
        TraceJob("b", 0.0, 10.0, 1),
        TraceJob("c", 0.0, 9.0, 1, attempts=3),
    )
    trace = with_retries(Trace("t", jobs, {}), 4)
    assert [(job.attempts, job.duration_s) for job in trace.jobs] == [(5, 50.0), (1, 10.0), (3, 9.0)]
    assert lingjun_like(1, retries=4) == with_retries(TRACE, 4)


def test_a_share_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="the share 'jobs' of elastic jobs must be 0 to 1, not 2"):
        with_elastic_jobs(TRACE, 1, jobs=2.0)
    with pytest.raises(ValueError, match="retries must be 0 or more, not -1"):
        with_retries(TRACE, -1)
