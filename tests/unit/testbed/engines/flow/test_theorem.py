"""Theorem 1 of Crux (SIGCOMM 2024, section 3.2, appendix A) on one bottleneck link."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.fluid.periodic import simulate
from workloads.periodic_job import PeriodicJob

SECONDS = st.floats(0.05, 3.0)


@st.composite
def jobs(draw: st.DrawFn) -> list[tuple[PeriodicJob, float]]:
    """Two to six jobs on one link with the FLOPs of an iteration each."""
    found = []
    for _ in range(draw(st.integers(2, 6))):
        compute = draw(SECONDS)
        lead = compute * draw(st.floats(0.0, 1.0))
        found.append((PeriodicJob(compute, lead, {"link": draw(SECONDS)}), draw(st.floats(1.0, 1000.0))))
    return found


@given(jobs(), st.lists(st.integers(0, 5), min_size=6, max_size=6), st.floats(1.0, 300.0))
@settings(max_examples=150, deadline=None)
def test_work_done_differs_from_intensity_on_the_link_by_one_iteration_of_each_job_at_most(
    case: list[tuple[PeriodicJob, float]], levels: list[int], horizon_s: float
) -> None:
    """Levels that all differ are strict priority, equal ones max-min sharing, anything else a mixture."""
    found = simulate([job for job, _ in case], levels[: len(case)], horizon_s)
    on_link = sum(work / job.communication_s * sent for (job, work), sent in zip(case, found.sent_s, strict=True))
    computed = sum(work * busy / job.compute_s for (job, work), busy in zip(case, found.busy_s, strict=True))
    assert abs(on_link - computed) <= sum(work for _, work in case) * (1 + 1e-6)


@given(jobs(), st.permutations(range(6)))
@settings(max_examples=30, deadline=None)
def test_their_ratio_goes_to_one(case: list[tuple[PeriodicJob, float]], order: list[int]) -> None:
    found = simulate([job for job, _ in case], order[: len(case)], 30_000.0)
    on_link = sum(work / job.communication_s * sent for (job, work), sent in zip(case, found.sent_s, strict=True))
    computed = sum(work * busy / job.compute_s for (job, work), busy in zip(case, found.busy_s, strict=True))
    assert 0.99 < on_link / computed < 1.01


@given(jobs(), st.lists(st.integers(0, 5), min_size=6, max_size=6))
@settings(max_examples=50, deadline=None)
def test_the_schedules_are_work_conserving(case: list[tuple[PeriodicJob, float]], levels: list[int]) -> None:
    """With a job that always sends, the link is never idle, whatever the level of that job."""
    greedy = PeriodicJob(0.0, 0.0, {"link": 1.0})
    chosen = [*levels[: len(case)], levels[0]]
    found = simulate([*(job for job, _ in case), greedy], chosen, 50.0)
    assert abs(sum(found.sent_s) - 50.0) < 1e-5
