"""Failures by cause, and what is done about them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.progress import Progress
from testbed.reproduce.managers import philly_failures
from testbed.reproduce.paper_experiment import Settings
from workloads.managers.catalogue import named_manager
from workloads.managers.durations import Play
from workloads.managers.jobs import Waiting
from workloads.traces.failures import causes
from workloads.traces.failures.causes import (
    CAUSES,
    LEAST_S,
    Failing,
    ended_early,
    failing,
    prerun_ends,
    with_known_inputs,
    with_prerun,
    without_repeats,
)
from workloads.traces.job_failures import SHARES
from workloads.traces.trace import TraceJob

FATES = [failing(f"job{number}", 1 + number % 16, 1000.0, seed=3) for number in range(20_000)]


def test_jobs_end_in_the_published_shares_and_fail_of_causes_as_often_as_published() -> None:
    shares = {status: count / len(FATES) for status, count in Counter(fate.status for fate in FATES).items()}
    assert shares == pytest.approx(dict(SHARES), abs=0.01)
    repeating = {name: cause.trials for name, cause in CAUSES.items() if cause.repeats and cause.on_one_gpu}
    found = Counter(fate.cause for fate in FATES if fate.status == "unsuccessful" and fate.cause in repeating)
    for name, trials in repeating.items():
        assert found[name] / found.total() == pytest.approx(trials / sum(repeating.values()), abs=0.015), name
    assert failing("job7", 8, 1000.0, 3) == failing("job7", 8, 1000.0, 3)


def test_an_unsuccessful_job_is_tried_five_times_and_others_end_by_themselves() -> None:
    assert {len(fate.attempts) for fate in FATES if fate.status == "unsuccessful"} == {5}
    assert all(fate.attempts[-1] == 1000.0 for fate in FATES if fate.status == "passed")
    assert all(len(fate.attempts) == 1 for fate in FATES if fate.status == "killed")
    assert {len(failing(f"job{n}", 4, 1.0, 1, retries=0).attempts) for n in range(500)} == {1}


@pytest.mark.parametrize("name", CAUSES)
def test_a_cause_shows_after_its_published_times(name: str) -> None:
    cause = CAUSES[name]
    for share, minutes in zip((0.5, 0.9, 0.95), cause.minutes, strict=True):
        assert cause.time_to_failure_s(share) == pytest.approx(max(LEAST_S, 60 * minutes))
    times = [cause.time_to_failure_s(share / 50) for share in range(51)]
    assert times == sorted(times)


def test_what_is_done_about_failures_saves_time_and_changes_no_outcome() -> None:
    for fate in FATES[:2000]:
        changed = [with_prerun(fate, 120.0), with_known_inputs(fate), without_repeats(fate), ended_early(fate)]
        assert all(other.ran_s <= fate.ran_s for other in changed)
        assert all(other.status == fate.status and other.cause in (fate.cause, "") for other in changed)


def test_each_interruption_counts_for_its_own_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(causes, "INTERRUPTED", 0.7)
    fates = [failing(f"job{number}", 8, 1e7, seed=1) for number in range(500)]
    mixed = [fate for fate in fates if len(set(fate.interrupted_by)) > 1]
    assert mixed
    for fate in mixed:
        assert [cause for cause, _ in fate.failures] == list(fate.interrupted_by)
        assert fate.cause == fate.interrupted_by[-1]
        assert ended_early(with_prerun(fate, 120.0)).failures == fate.failures
    jobs = [TraceJob(f"job{number}", 0.0, 1e7, 8) for number in range(500)]
    rows = philly_failures._by_cause(jobs, {job.name: fate for job, fate in zip(jobs, fates, strict=True)})
    counted = {row.label.removeprefix("cause: "): row.here["failed_attempts"] for row in rows}
    assert counted == Counter(cause for fate in fates for cause, _ in fate.failures)


def test_a_job_that_ends_early_is_not_interrupted_after_its_end() -> None:
    by = ("CUDA initialisation", "model checkpoint error")
    late = Failing("passed", by[1], (30.0, 900.0, 1000.0), 0.4, interrupted_by=by)
    assert ended_early(late) == Failing("passed", by[0], (30.0, 400.0), 0.4, interrupted_by=by[:1])
    assert ended_early(Failing("passed", by[1], (900.0, 1000.0), 0.4, interrupted_by=by[1:])).cause == ""
    needed = Failing("passed", by[1], (900.0, 1000.0), 1.0, interrupted_by=by[1:])
    assert ended_early(needed) == needed


def test_three_quarters_of_the_jobs_that_pass_need_40_percent_of_their_epochs() -> None:
    shares = Counter(fate.early_share for fate in FATES if fate.status == "passed")
    assert set(shares) == {0.4, 1.0}
    assert shares[0.4] / shares.total() == pytest.approx(0.75, abs=0.01)


def test_a_pre_run_ends_what_fails_by_then_and_nothing_else() -> None:
    for fate in FATES[:2000]:
        tried = with_prerun(fate, 120.0)
        cause = CAUSES.get(fate.cause)
        repeats = fate.status == "unsuccessful" and cause is not None and cause.repeats and cause.on_one_gpu
        caught = repeats and fate.attempts[0] <= 120.0
        assert bool(tried.attempts) != caught
        assert tried.before_s == (fate.attempts[0] if caught else 120.0)


@given(
    arrivals=st.lists(st.tuples(st.floats(0, 1000), st.floats(0, 100)), max_size=20).map(sorted), gpus=st.integers(1, 4)
)
def test_pre_runs_wait_for_their_turn(arrivals: list[tuple[float, float]], gpus: int) -> None:
    ends = prerun_ends(arrivals, gpus)
    assert all(end >= at + seconds for end, (at, seconds) in zip(ends, arrivals, strict=True))
    spans = [(end - seconds, end) for end, (_, seconds) in zip(ends, arrivals, strict=True)]
    for begin, end in spans:
        middle = (begin + end) / 2
        assert sum(other + 1e-6 < middle < then - 1e-6 for other, then in spans) <= gpus


def test_every_treatment_has_a_row_and_none_uses_more_than_four_retries(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    lines = [f"job{number},{600 * number},{1200 + 60 * (number % 9)},{2 ** (number % 4)}" for number in range(120)]
    path.write_text("\n".join(["name,submit_s,duration_s,gpus", *lines, ""]), "utf-8")
    settings = Settings(cases=0, seed=1, out=tmp_path, trace=path, days=2.0)
    rows = {row.label: row for row in philly_failures.reproduce(settings, Progress(quiet=True))}
    assert list(rows)[: len(philly_failures.TREATMENTS)] == list(philly_failures.TREATMENTS)
    base = rows["four retries"].here
    for label in list(philly_failures.TREATMENTS)[1:]:
        assert rows[label].here["gpu_hours"] <= base["gpu_hours"] * 1.05, label
    assert rows["all of these"].here["saved_gpu_hours"] > 0.2
    by_cause = [row.here for label, row in rows.items() if label.startswith("cause: ")]
    assert sum(each["failed_share"] for each in by_cause) == pytest.approx(1.0)
    assert sum(each["failed_attempts"] for each in by_cause) == base["failed_attempts"]
    once = rows["no retries"].here
    assert once["failed_attempts"] == pytest.approx(once["unsuccessful_share"] * len(lines))
    assert once["failed_attempts"] > 0
    assert rows["four retries"].fitted == ("unsuccessful_share",)


def test_jobs_that_fail_wait_again_from_their_beginning() -> None:
    job = Waiting("j", 4, 0.0, 30.0)
    made = Play(named_manager("consolidated"), philly_failures.fabric_of(2), [job], attempts={"j": (10.0, 20.0)})
    (outcome,) = made.run()
    assert (outcome.end_s, outcome.attempts, outcome.allocated_gpu_s) == (30.0, 2, 120.0)
