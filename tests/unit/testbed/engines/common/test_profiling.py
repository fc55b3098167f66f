"""Over which iterations a job's profile is taken."""

from __future__ import annotations

from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from testbed.engines.common.iterations import HostIteration
from testbed.engines.common.profiling import ITERATIONS, PATIENCE, disturbed_iterations, profile_window
from workloads.iteration.protocol import PhaseTimes
from workloads.job import Job, Phase

JOB = Job("job", "test", ("h0g0", "h1g0"), (Phase(1.0, 0.0, "allreduce", ()),), (), 1.0, 10)


def test_undisturbed_it_is_taken_as_soon_as_there_are_enough_after_the_first() -> None:
    assert next(made for made in count() if profile_window(made, frozenset()) is not None) == ITERATIONS + 1
    assert profile_window(ITERATIONS + 1, frozenset()) == 1


def test_a_disturbed_iteration_is_not_among_them() -> None:
    assert profile_window(ITERATIONS + 3, frozenset({2})) == 3
    assert profile_window(ITERATIONS + 2, frozenset({2})) is None


def test_where_everything_is_disturbed_the_last_ones_must_do_in_the_end() -> None:
    made = PATIENCE * ITERATIONS
    assert profile_window(made, frozenset(range(made))) is None
    assert profile_window(made + 1, frozenset(range(made + 1))) == made + 1 - ITERATIONS


@given(st.integers(0, 40), st.frozensets(st.integers(0, 40)))
def test_they_are_whole_iterations_that_have_been_made(made: int, disturbed: frozenset[int]) -> None:
    first = profile_window(made, disturbed)
    assert first is None or 1 <= first <= made - ITERATIONS


def test_a_span_on_one_host_disturbs_the_iteration_for_all() -> None:
    def report(host: str, iteration: int, start: float) -> HostIteration:
        return HostIteration(JOB.name, host, (), iteration, (PhaseTimes(start, start, start, start + 1.0, ()),), 0.0)

    reports = [report("h0", 0, 0.0), report("h1", 0, 0.5), report("h0", 1, 1.5), report("h1", 1, 1.5)]
    assert disturbed_iterations(JOB, reports, [(1.2, 1.4)]) == {0}
    assert disturbed_iterations(JOB, reports, [(0.2, 0.3), (2.0, 9.0)]) == {0, 1}
    assert disturbed_iterations(JOB, reports, []) == frozenset()
