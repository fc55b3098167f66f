from __future__ import annotations

import dataclasses
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decision import ByteLevels, Decision
from testbed.experiment.scheduler_choice import SchedulerChoice
from testbed.metrics.job_metrics import MeaningfulLevels, decision_for, intensity_of, job_metrics, level_of, profile_of
from testbed.metrics.summary import run_entry
from testbed.results.record import DecisionRow, IterationRow, RunRecord, Window
from workloads.job import Job

PARTS = st.tuples(*[st.floats(0.0, 3.0)] * 4)


def _job(*, gpus: int = 2, iterations: int = 100, start_s: float = 0.0) -> Job:
    return Job("j", "m", tuple(f"h0g{g}" for g in range(gpus)), (), (), 1e12, iterations, start_s)


def _record(rows: list[IterationRow], window: Window) -> RunRecord:
    return RunRecord(SchedulerChoice("ecmp"), "flow", window.end_s, {"j": window}, tuple(rows), (), ())


def _row(
    gpu: str, number: int, start: float, compute: float, exposed: float, straggler: float, bad: bool = False
) -> IterationRow:
    return IterationRow(
        "j", gpu, number, start, compute, exposed, exposed, straggler, start + compute + exposed + straggler, bad
    )


def _back_to_back(
    parts: list[tuple[float, float, float, float]], disturbed: frozenset[int] = frozenset()
) -> list[IterationRow]:
    """Two GPUs, each with its own order of the parts; the fourth part is a gap before the iteration."""
    rows = []
    for gpu, order in (("h0g0", parts), ("h0g1", parts[::-1])):
        now = 0.0
        for number, (compute, exposed, straggler, gap) in enumerate(order):
            rows.append(_row(gpu, number, now + gap, compute, exposed, straggler, number in disturbed))
            now = rows[-1].end_s
    return rows


@given(st.lists(PARTS, min_size=1, max_size=8), st.floats(0, 20), st.floats(0.01, 30), st.frozensets(st.integers(0, 7)))
def test_idle_and_busy_time_add_up_to_the_allocated_time(parts, start, length, disturbed):
    rows = _back_to_back(parts, disturbed)
    metrics = job_metrics(_record(rows, Window(start, start + length)), _job())
    clipped = (min(r.end_s, start + length) - max(r.start_s, start) for r in rows if r.iteration in disturbed)
    lost = sum(max(0.0, part) for part in clipped)
    assert metrics.busy_s + sum(metrics.idle_s.values()) == pytest.approx(metrics.allocated_s)
    assert metrics.allocated_s == pytest.approx(2 * length - lost, abs=1e-6)


@given(st.lists(PARTS, min_size=1, max_size=8), st.floats(0, 20), st.floats(0.01, 30))
def test_utilisation_lies_between_nothing_and_all(parts, start, length):
    metrics = job_metrics(_record(_back_to_back(parts), Window(start, start + length)), _job())
    assert 0.0 <= metrics.utilization <= 1.0
    assert all(value >= 0 for value in metrics.idle_s.values())


def test_each_second_of_a_gpu_goes_to_its_cause():
    rows = [_row(gpu, i, 2.0 * i, 1.0, 0.7, 0.3) for i in range(5) for gpu in ("h0g0", "h0g1")]
    metrics = job_metrics(_record(rows, Window(2.0, 10.0)), _job())
    assert metrics.utilization == pytest.approx(0.5)
    assert metrics.idle_s == pytest.approx({"exposed": 5.6, "straggler": 2.4, "start": 0.0})
    assert (metrics.iterations, metrics.times.mean) == (4, pytest.approx(2.0))
    assert metrics.work_flop == pytest.approx(4e12)


def test_a_gpu_that_has_not_begun_waits_to_start():
    rows = [_row(gpu, 0, 3.0, 1.0, 0.0, 0.0) for gpu in ("h0g0", "h0g1")]
    metrics = job_metrics(_record(rows, Window(0.0, 4.0)), _job())
    assert metrics.idle_s == pytest.approx({"exposed": 0.0, "straggler": 0.0, "start": 6.0})


def test_waiting_for_the_phase_of_a_shifted_job_is_idle_time_of_cause_start():
    rows = [replace(_row(gpu, 0, 0.0, 1.0, 0.5, 0.0), end_s=2.0) for gpu in ("h0g0", "h0g1")]
    metrics = job_metrics(_record(rows, Window(0.0, 2.0)), _job())
    assert metrics.idle_s == pytest.approx({"exposed": 1.0, "straggler": 0.0, "start": 1.0})
    assert metrics.utilization == pytest.approx(0.5)


def test_an_iteration_across_the_edge_counts_with_the_part_inside():
    rows = [_row(gpu, i, 2.0 * i, 1.0, 1.0, 0.0) for i in range(3) for gpu in ("h0g0", "h0g1")]
    metrics = job_metrics(_record(rows, Window(1.5, 6.0)), _job())
    assert metrics.busy_s == pytest.approx(2 * (0.25 + 1 + 1))
    assert metrics.iterations == 2


def test_a_disturbed_iteration_is_left_out_on_all_gpus_and_counted():
    rows = [_row(gpu, i, 2.0 * i, 1.0, 1.0, 0.0) for i in (0, 1) for gpu in ("h0g0", "h0g1")]
    rows += [_row("h0g0", 2, 4.0, 1.0, 9.0, 0.0, bad=True), _row("h0g1", 2, 4.0, 1.0, 9.0, 0.0)]
    metrics = job_metrics(_record(rows, Window(0.0, 14.0)), _job())
    assert (metrics.iterations, metrics.disturbed) == (2, 1)
    assert metrics.times.mean == pytest.approx(2.0)
    assert metrics.utilization == pytest.approx(0.5)
    assert metrics.allocated_s == pytest.approx(8.0)


def test_without_the_flag_a_slow_iteration_counts():
    rows = [_row("h0g0", i, s, 1.0, e, 0.0) for i, s, e in ((0, 0.0, 1.0), (1, 2.0, 9.0))]
    assert job_metrics(_record(rows, Window(0.0, 12.0)), _job(gpus=1)).times.mean == pytest.approx(6.0)


def test_an_iteration_that_one_gpu_did_not_end_is_none():
    rows = [
        _row("h0g0", 0, 0.0, 1.0, 1.0, 0.0),
        _row("h0g1", 0, 0.0, 1.0, 1.0, 0.0),
        _row("h0g0", 1, 2.0, 1.0, 1.0, 0.0),
    ]
    assert job_metrics(_record(rows, Window(0.0, 4.0)), _job()).iterations == 1


def test_jct_is_measured_when_the_job_ended():
    rows = [_row("h0g0", i, 1.5 + 2.0 * i, 1.0, 1.0, 0.0) for i in range(3)]
    metrics = job_metrics(_record(rows, Window(1.5, 7.5)), _job(gpus=1, iterations=3, start_s=1.0))
    assert (metrics.jct_s, metrics.jct_source) == (pytest.approx(6.5), "measured")


def test_jct_is_projected_when_it_did_not():
    rows = [_row("h0g0", i, 1.5 + 2.0 * i, 1.0, 1.0, 0.0) for i in range(3)]
    metrics = job_metrics(_record(rows, Window(1.5, 7.5)), _job(gpus=1, iterations=100, start_s=1.0))
    assert (metrics.jct_s, metrics.jct_source) == (pytest.approx(200.5), "projected")


def test_a_job_without_iterations_has_no_times():
    metrics = job_metrics(_record([], Window(0.0, 4.0)), _job())
    assert (metrics.times, metrics.jct_s, metrics.utilization) == (None, None, 0.0)
    assert metrics.idle_s["start"] == pytest.approx(8.0)


def test_the_run_covers_the_gpus_of_all_jobs(experiment, records):
    entry = run_entry(records[0], experiment)
    busy = sum(job["gpu_utilization"] * job["allocated_gpu_s"] for job in entry["jobs"])
    assert entry["gpu_utilization"] == pytest.approx(busy / sum(job["allocated_gpu_s"] for job in entry["jobs"]))
    assert entry["jobs"][0]["gpu_utilization"] == pytest.approx(0.75)
    assert list(entry)[:6] == ["scheduler", "gpu_utilization", "work_flop", "duration_s", "jobs", "fidelity"]
    assert list(entry["jobs"][0])[:11] == [
        "name",
        "model",
        "gpus",
        "level",
        "intensity",
        "iterations",
        "iteration_s",
        "gpu_utilization",
        "gpu_idle_s",
        "jct_s",
        "jct_source",
    ]


def test_a_summary_says_which_profile_a_scheduler_went_by(experiment, records):
    assert [job["profile"] for job in run_entry(records[0], experiment)["jobs"]] == [None, None]
    decision = Decision(notes={"profile": {"big": "measured", "small": "declared"}})
    assert [profile_of(job, decision) for job in experiment.jobs] == ["measured", "declared"]


def test_levels_and_intensities_come_from_the_decision(experiment, records):
    big, small = experiment.jobs
    decided, default = (decision_for(record, big) for record in reversed(records))
    assert (level_of(big, decided, 8), level_of(small, decided, 8), level_of(big, default, 8)) == (0, 1, 7)
    assert intensity_of(big, decided) == 1.0e16
    assert intensity_of(big, Decision()) is None
    assert level_of(_job(), decided, 8) is None


def test_a_job_has_no_level_where_levels_order_nothing(experiment):
    big, small = experiment.jobs
    levels = MeaningfulLevels(experiment.jobs, 8)

    def decided(**columns):
        paths = {flow.id: () for job in (big, small) for flow in job.flows}
        decision = Decision(paths, **columns)
        return levels.of(big, decision), levels.of(small, decision)

    assert decided() == (None, None)
    assert decided(levels={"big": 0, "small": 1}) == (0, 1)
    assert decided(levels={"big": 3, "small": 3}) == (None, None)
    assert decided(levels={"big": 3}) == (3, None), "small sends at the lowest level: big overtakes it"
    assert decided(levels={"big": 7}) == (None, None), "the lowest level is that of everything else"
    assert decided(levels={big.flows[0].id: 2}) == (2, None)
    assert decided(byte_levels={"big": ByteLevels("sent", (1e6,))}, levels={"small": 5}) == (None, 5)


def test_a_job_alone_has_no_level(experiment):
    big, small = experiment.jobs
    departed = Decision({flow.id: () for flow in big.flows}, {"big": 0})
    assert MeaningfulLevels(experiment.jobs, 8).of(big, departed) is None
    assert MeaningfulLevels(experiment.jobs, 8).of(small, departed) is None


def test_a_job_that_left_keeps_the_last_decision_that_knew_it(experiment, records):
    big = experiment.jobs[0]
    later = DecisionRow(5.0, "departure of big", Decision(levels={"small": 0}))
    record = dataclasses.replace(records[1], decisions=(*records[1].decisions, later))
    assert level_of(big, decision_for(record, big), 8) == 0
