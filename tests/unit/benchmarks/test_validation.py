"""What the validation compares with: exact schedules, sizes of cases, rows that are kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from benchmarks import validation
from benchmarks.common import Line, Run, Scenario
from benchmarks.contention import CONTESTS, EXAMPLE_1, EXAMPLE_2, Contest, Times
from benchmarks.isolated import Case
from controller.decision import Decision
from testbed.api import prepare
from testbed.experiment.scheduler_choice import SchedulerChoice
from testbed.results.record import DecisionRow, IterationRow, LinkRow, RunRecord
from workloads.analysis import isolated


def prepared_of(scenario: Scenario, scheduler: object, folder: Path):  # type: ignore[no-untyped-def]
    path = folder / "case.yaml"
    path.write_text(yaml.safe_dump({**scenario, "schedulers": [scheduler]}))
    return prepare(str(path))


def exact(contest: Contest) -> list[tuple[float, float]]:
    return [(pytest.approx(times.sending_s), pytest.approx(times.idle_s)) for times in contest.exact()]


def test_the_exact_schedules_are_the_tables_of_the_paper() -> None:
    assert exact(Contest("", *EXAMPLE_1)) == [(6.0, 6.0), (3.0, 9.0)]
    assert exact(Contest("", *EXAMPLE_1[::-1])) == [(6.0, 6.0), (4.0, 8.0)]
    assert exact(Contest("", *EXAMPLE_2)) == [(3.0, 0.0), (7.0, 7.0)]
    assert exact(Contest("", *EXAMPLE_2[::-1])) == [(9.0, 6.0), (3.0, 0.0)]


@pytest.mark.parametrize("contest", CONTESTS, ids=lambda contest: contest.name)
def test_jobs_of_a_contest_take_alone_what_their_patterns_say(contest: Contest, tmp_path: Path) -> None:
    prepared = prepared_of(contest.scenario(), contest.scheduler(), tmp_path)
    for player, job in zip(contest.players, prepared.jobs, strict=True):
        alone = isolated(job, prepared.fabric)
        assert alone.communication_s == pytest.approx(player.pattern.communication_s)
        assert alone.iteration_s == pytest.approx(player.pattern.period_s)
    between = prepared.fabric.candidate_paths
    paths = [
        {link for flow in job.flows for path in between(flow.source, flow.target) for link in path}
        for job in prepared.jobs
    ]
    assert len(paths[0] & paths[1]) == 4


@pytest.mark.parametrize("fabric", ["clos", "double-sided"])
@pytest.mark.parametrize("collective", validation.COLLECTIVES)
def test_a_case_communicates_for_as_long_as_it_says(fabric: str, collective: str, tmp_path: Path) -> None:
    case = Case(fabric, collective, 0.7, 0.5)
    prepared = prepared_of(case.scenario(4), "ecmp", tmp_path)
    assert isolated(prepared.jobs[0], prepared.fabric).communication_s == pytest.approx(0.7)


def test_sending_and_idle_times_are_read_inside_the_window(tmp_path: Path) -> None:
    contest = Contest("short", *EXAMPLE_1, window_s=2.0)  # the window is 2 s to 4 s
    prepared = prepared_of(contest.scenario(), contest.scheduler(), tmp_path)
    experiment = prepared.experiments[0]
    fabric, jobs = experiment.fabric, experiment.jobs
    paths = {f.id: fabric.candidate_paths(f.source, f.target)[0] for job in jobs for f in job.flows}
    shared = set.intersection(*({link for f in job.flows for link in paths[f.id]} for job in jobs))

    def row(job: str, start_s: float, compute_s: float, exposed_s: float, waited_s: float = 0.0) -> IterationRow:
        end_s = start_s + waited_s + compute_s + exposed_s
        return IterationRow(job, "g", 0, start_s, compute_s, exposed_s, exposed_s, 0.0, end_s)

    links = [
        LinkRow(time_s, link, level, size, 0.0, 0)
        for link in shared
        for time_s, level, size in ((1.5, 1, 5e9), (3.0, 0, 12.5e9), (3.5, 0, 5e9), (4.5, 0, 6e9), (4.5, 1, 8e9))
    ]
    iterations = (
        row("one", 0.0, 2.0, 1.5),
        row("one", 3.5, 2.0, 0.0),
        row("two", 0.0, 1.0, 2.5, 1.0),
        row("two", 4.5, 1.0, 0.0),
    )
    record = RunRecord(
        SchedulerChoice("fixed"),
        "emulation",
        6.0,
        {},
        iterations,
        tuple(links),
        (DecisionRow(0.0, "", Decision(paths=paths)),),
        environment={"cpu": [[second] for second in (0.5, 1.5, 2.0, 3.0, 3.5, 4.5, 5.5)]},
    )
    one, two = contest.measured(Run(experiment, record, {}, ""))
    assert (one.sending_s, one.idle_s) == (pytest.approx(8 * (12.5e9 + 5e9 + 3e9) / 100e9), pytest.approx(1.5))
    assert (two.sending_s, two.idle_s) == (pytest.approx(8 * 4e9 / 100e9), pytest.approx(2.0))
    with pytest.raises(ValueError, match="ended before"):
        Contest("long", *EXAMPLE_1, window_s=9.0).measured(Run(experiment, record, {}, ""))


def test_every_case_has_a_name_of_its_own_and_the_quick_ones_cover_each_kind() -> None:
    cases = list(validation.cases())
    names = [name for name, _, _ in cases]
    assert len(set(names)) == len(names) == 2 * 4 * 3 * 3 + 8 + 3
    quick = {name.split("/")[0] for name, quick, _ in cases if quick}
    assert quick == {"alone", "two-jobs", "dilation"}


def test_rows_go_on_where_a_kill_cut_them_off(tmp_path: Path) -> None:
    path = tmp_path / "rows" / "kept.jsonl"
    options = validation.Options(1, 4)
    validation._make("one", lambda _: Line({"error": "+0.10 %"}, "within 1 %", "pass"), options, path)

    def fails(_: validation.Options) -> Line:
        raise ValueError("cut short")

    validation._make("two", fails, options, path)
    path.write_text(path.read_text() + '{"case": "three", "colu')
    rows = validation.kept_rows(path)
    assert {name: row["outcome"] for name, row in rows.items()} == {"one": "pass", "two": "inconclusive"}
    assert validation.line_of(rows["one"]) == Line({"error": "+0.10 %"}, "within 1 %", "pass")
    assert json.loads(path.read_text().splitlines()[1])["note"] == "cut short"


def test_times_are_shown_beside_each_other() -> None:
    assert validation._seconds(Times(3.0, 9.0)) == "3.00, 9.00"
