"""Reports of workers become rows: idle time by cause, undilated, whole iterations only."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.api import _discarding, prepare
from testbed.engines.common.iterations import (
    HostIteration,
    iteration_rows,
    late_spans,
    lateness_at_first,
    overlaps,
    phase_errors,
    undisturbed_iterations,
    windows,
)
from testbed.experiment.experiment import Experiment
from testbed.results.record import IterationRow
from workloads.iteration.protocol import PhaseTimes
from workloads.iteration.time_shift import TimeShift

ORIGIN = 1000.0
EXPERIMENT = prepare("hello", overrides=["scale={bandwidth: 8000, time: 2}"]).experiments[0]


def report(
    host: str, *phases: PhaseTimes, job: str = "big", iteration: int = 0, experiment: Experiment = EXPERIMENT
) -> HostIteration:
    gpus = next(entry.gpus for entry in experiment.jobs if entry.name == job)
    return HostIteration(
        job, host, tuple(gpu for gpu in gpus if experiment.fabric.host_of_gpu[gpu] == host), iteration, phases, 0.0
    )


def phase(start: float, ready: float, done: float, end: float, *compute: float) -> PhaseTimes:
    return PhaseTimes(ORIGIN + start, ORIGIN + ready, ORIGIN + done, ORIGIN + end, compute)


def rows_of(*reports: HostIteration, disturbed: tuple[tuple[float, float], ...] = ()) -> dict[str, IterationRow]:
    rows = iteration_rows(reports, EXPERIMENT, ORIGIN, [(ORIGIN + a, ORIGIN + b) for a, b in disturbed])
    return {row.gpu: row for row in rows}


def test_waiting_is_for_the_straggler_until_all_are_ready_and_for_bytes_from_then_on() -> None:
    rows = rows_of(
        report("h0", phase(0, 4, 10, 10, 4, 3)),
        report("h1", phase(0, 6, 10, 10, 6, 6)),
    )
    early = rows["h0g1"]
    assert (early.compute_s, early.straggler_s, early.exposed_s) == (1.5, 1.5, 2.0)
    late = rows["h1g0"]
    assert (late.compute_s, late.straggler_s, late.exposed_s) == (3.0, 0.0, 2.0)


def test_times_are_undilated_and_count_from_the_start_of_the_run() -> None:
    rows = rows_of(report("h0", phase(2, 6, 10, 10, 4, 4)), report("h1", phase(2, 6, 10, 10, 4, 4)))
    row = rows["h0g0"]
    assert (row.start_s, row.end_s, row.communication_s) == (1.0, 5.0, 2.0)


def test_communication_under_compute_is_not_exposed() -> None:
    rows = rows_of(report("h0", phase(0, 1, 3, 4, 4, 4)), report("h1", phase(0, 1, 3, 4, 4, 4)))
    assert (rows["h0g0"].exposed_s, rows["h0g0"].communication_s) == (0.0, 1.0)


def test_an_iteration_that_one_host_has_not_ended_is_left_out() -> None:
    assert rows_of(report("h0", phase(0, 4, 10, 10, 4, 4))) == {}


@pytest.mark.parametrize(("span", "hit"), [((9.0, 12.0), True), ((10.0, 12.0), False), ((-3.0, 0.5), True)])
def test_a_disturbance_hits_the_iterations_that_it_overlaps_on_all_hosts(span: tuple[float, float], hit: bool) -> None:
    rows = rows_of(report("h0", phase(0, 4, 10, 10, 4, 4)), report("h1", phase(1, 4, 10, 10, 3, 3)), disturbed=(span,))
    assert {row.disturbed for row in rows.values()} == {hit}


seconds = st.floats(0, 10, allow_nan=False)


@given(st.lists(st.tuples(seconds, seconds, seconds, seconds, seconds), min_size=1, max_size=3), seconds)
def test_busy_and_idle_parts_always_add_up_to_the_iteration(
    parts: list[tuple[float, float, float, float, float]], lag: float
) -> None:
    reports = []
    for host, shift in (("h0", 0.0), ("h1", lag)):
        begin, phases = shift, []
        for one, other, ready, communicate, after in parts:
            end = max(begin + max(one, other), begin + ready + communicate) + after
            phases.append(phase(begin, begin + ready, begin + ready + communicate, end, one, other))
            begin = end
        reports.append(report(host, *phases))
    for row in rows_of(*reports).values():
        assert row.compute_s + row.exposed_s + row.straggler_s == pytest.approx(row.end_s - row.start_s, abs=1e-6)
        assert min(row.exposed_s, row.straggler_s, row.compute_s, row.communication_s) >= 0


def test_the_window_leaves_the_warm_up_out() -> None:
    reports = [
        report(host, phase(10 * i, 10 * i + 4, 10 * i + 10, 10 * i + 10, 4, 4), iteration=i)
        for i in range(4)
        for host in ("h0", "h1")
    ]
    rows = iteration_rows(reports, EXPERIMENT, ORIGIN, [(ORIGIN + 21, ORIGIN + 22)])
    assert EXPERIMENT.measure.warmup == 1
    window = windows(rows, EXPERIMENT)
    assert set(window) == {"big"}
    assert (window["big"].start_s, window["big"].end_s) == (5.0, 20.0)
    assert undisturbed_iterations(rows, 1) == {"big": 2}


def test_a_late_pause_disturbs_its_iteration_and_those_beside_it() -> None:
    late = replace(report("h0", phase(0, 4, 10, 10, 4, 4)), late=0.03)
    spans = late_spans([late, report("h1", phase(0, 4, 12, 12, 4, 4))], allowed_s=0.02)
    assert spans == [(ORIGIN, ORIGIN + 10)]
    assert overlaps(report("h1", phase(9, 10, 12, 12, 4, 4)), spans)
    assert not overlaps(report("h1", phase(10, 14, 16, 16, 4, 4)), spans)


def test_the_lateness_at_first_is_that_of_warmup_and_of_jobs_that_begin_together() -> None:
    assert EXPERIMENT.measure.warmup == 1
    first, second = (report("h0", phase(0, 4, 10, 10, 4, 4), iteration=iteration) for iteration in range(2))
    reports = [replace(first, late=0.03), replace(second, late=0.09)]
    assert lateness_at_first(reports, EXPERIMENT) == 0.03
    later = replace(EXPERIMENT, jobs=tuple(replace(job, start_s=1.0) for job in EXPERIMENT.jobs))
    assert lateness_at_first(reports, later) == 0.0


def test_iterations_that_waited_are_held_against_their_phase() -> None:
    def begun(at: float, waited: float) -> HostIteration:
        return replace(report("h0", phase(at, at + 1, at + 2, at + 3, 1)), waited=waited)

    reports = [begun(0.5, 0.1), begun(3.7, 0.0), begun(4.504, 0.8), begun(8.497, 0.2)]
    assert phase_errors(reports, TimeShift(ORIGIN, 0.5, 4.0)) == pytest.approx([0.0, 0.004, -0.003])


def test_discarding_is_asked_of_every_run_of_a_scenario_and_off_by_default() -> None:
    prepared = prepare("hello")
    assert not any(experiment.measure.discard_disturbed for experiment in prepared.experiments)
    assert all(experiment.measure.discard_disturbed for experiment in _discarding(prepared).experiments)
