"""Windows, load, concurrency and quantiles of a trace follow their definitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.traces.measures import concurrency, concurrency_of, quantile, share_up_to, size_steps
from workloads.traces.trace import OUTSIDE_WINDOW, Trace, TraceJob, load, merge, window

JOBS = (TraceJob("a", 0, 100, 8), TraceJob("b", 50, 50, 4), TraceJob("c", 100, 10, 16))
TRACE = Trace("t", JOBS, {"no GPUs": 2})
MANY = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50), st.integers(1, 9)), min_size=1, max_size=12)


def trace_of(rows: list[tuple[int, int, int]]) -> Trace:
    jobs = (TraceJob(f"j{number}", *row) for number, row in enumerate(sorted(rows)))
    return Trace("t", tuple(jobs), {})


def test_a_window_counts_what_it_leaves_out_and_begins_at_its_start() -> None:
    found = window(TRACE, 50, 100)
    assert [(job.name, job.submit_s) for job in found.jobs] == [("b", 0)]
    assert found.skipped == {"no GPUs": 2, OUTSIDE_WINDOW: 2}
    assert window(found, 0, 1).skipped == found.skipped
    with pytest.raises(ValueError, match="a window must begin"):
        window(TRACE, 100, 100)


def test_load_is_gpu_seconds_over_gpus_times_span() -> None:
    assert load(TRACE, 10) == (8 * 100 + 4 * 50 + 16 * 10) / (10 * 100)
    assert load(TRACE, 10, span_s=1160) == 0.1
    with pytest.raises(ValueError, match="has no span"):
        load(window(TRACE, 0, 1), 10)


def test_a_job_that_ends_frees_before_another_begins() -> None:
    assert concurrency(TRACE) == ((0.0, 1, 8), (50, 2, 12), (100, 1, 16), (110, 0, 0))
    found = concurrency_of(TRACE)
    assert (found.peak_jobs, found.peak_jobs_at_s, found.peak_gpus, found.peak_gpus_at_s) == (2, 50, 16, 100)
    assert found.mean_gpus == pytest.approx((8 * 50 + 12 * 50 + 16 * 10) / 110)
    assert concurrency_of(TRACE, 50).mean_gpus == 8


@settings(max_examples=50)
@given(MANY)
def test_mean_concurrency_is_job_seconds_over_time(rows: list[tuple[int, int, int]]) -> None:
    trace = trace_of(rows)
    end = max(job.submit_s + job.duration_s for job in trace.jobs)
    found = concurrency_of(trace)
    assert found.mean_jobs * end == pytest.approx(sum(job.duration_s for job in trace.jobs))
    assert found.mean_gpus * end == pytest.approx(sum(job.gpu_seconds for job in trace.jobs))
    assert concurrency(trace)[-1][1:] == (0, 0)


def test_size_steps_end_at_one_and_step_where_sizes_are() -> None:
    steps = size_steps(TRACE)
    assert steps == ((4, 1 / 3), (8, 2 / 3), (16, 1.0))
    assert [share_up_to(steps, gpus) for gpus in (3, 4, 15, 99)] == [0, 1 / 3, 2 / 3, 1]


@settings(max_examples=50)
@given(st.lists(st.integers(), min_size=1, max_size=20), st.integers(0, 100))
def test_a_quantile_is_a_value_that_enough_do_not_exceed(values: list[int], percent: int) -> None:
    found = quantile(values, percent / 100)
    assert found in values
    assert sum(value <= found for value in values) * 100 >= percent * len(values)


def test_merged_traces_keep_every_job_and_every_reason() -> None:
    found = merge("both", [TRACE, Trace("u", (TraceJob("a", 60, 1, 1),), {"no GPUs": 1}, synthetic=True)])
    assert [job.name for job in found.jobs] == ["a", "b", "a#2", "c"]
    assert found.skipped == {"no GPUs": 3}
    assert found.synthetic


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"submit_s": -1.0}, "submit_s"),
        ({"duration_s": 0.0}, "duration_s"),
        ({"gpus": 0}, "gpus"),
        ({"fate": "lost"}, "fate"),
        ({"attempts": 0}, "attempts"),
    ],
)
def test_what_no_job_can_be_is_refused(changes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"job 'a': {message} must be"):
        TraceJob(**{"name": "a", "submit_s": 0.0, "duration_s": 1.0, "gpus": 1, **changes})
