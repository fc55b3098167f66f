"""Lyra's table: what is fitted to what, and the rows on small traces."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.cli.main import main
from testbed.progress import Progress
from testbed.reproduce.managers import lyra_cluster, lyra_load, lyra_replay, lyra_table, philly_failures
from testbed.reproduce.managers.lyra_cluster import Variant, cluster, jobs_of, play
from testbed.reproduce.paper_experiment import Settings
from workloads.managers.capacities.gpu_types import USUAL_TYPE
from workloads.traces.synthetic import lingjun_like
from workloads.traces.trace import Trace, window

TRACE = lingjun_like(1, gpus=2000, jobs=500, gpu_share=1.0, keep_peaks=False)
PAPERS_NUMBERS = {
    value for label, row in lyra_table.PAPER_ROWS.items() for value in row.values() if value not in (0.0, 0.72)
}


def test_the_fit_reads_the_baselines_usage_and_no_other_number_of_the_paper() -> None:
    tree = ast.parse(Path(lyra_load.__file__).read_text("utf-8"))
    numbers = {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and type(node.value) in (int, float)
    }
    assert lyra_load.BASELINE_USAGE in numbers
    assert numbers.isdisjoint(PAPERS_NUMBERS)
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert imported == {"__future__", "collections.abc", "math", "typing"}


def test_the_fit_finds_the_hosts_whose_usage_is_closest() -> None:
    assert lyra_load.fitted_hosts(lambda hosts: min(1.0, 72.0 / hosts), 80 * 8 * 100.0, 100.0, 8) == 100


def test_the_fit_plays_the_baseline_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[Variant] = []

    def recorded(
        trace: Trace, variant: Variant, where: lyra_cluster.Cluster, span_s: float, seed: int
    ) -> tuple[tuple[()], dict[str, float]]:
        played.append(variant)
        return (), {"usage_training": 72.0 / where.training}

    monkeypatch.setattr(lyra_table, "play", recorded)
    small = replace(TRACE, jobs=tuple(replace(job, gpus=8, duration_s=11_000.0) for job in TRACE.jobs))
    lyra_table.fit(small, lyra_table.span_of(small), 1)
    assert set(played) == {lyra_table.BASELINE}


def test_jobs_that_do_not_fit_on_lent_gpus_ask_for_the_clusters_own() -> None:
    jobs = jobs_of(TRACE, Variant(), 1408, 1)
    anywhere = [job for job in jobs if not job.gpu_type]
    assert len(anywhere) == pytest.approx(lyra_cluster.FUNGIBLE * len(jobs), abs=1)
    assert all(job.gpu_type == USUAL_TYPE for job in jobs if job not in anywhere)
    assert all(not job.gpu_type for job in jobs if job.max_gpus is not None)
    everything = jobs_of(TRACE, Variant(everything=True), 1408, 1)
    assert all(job.max_gpus and not job.gpu_type for job in everything)


def test_every_row_ends_every_job_and_usage_is_a_share() -> None:
    trace = window(TRACE, 0.0, 2 * 86400.0)
    for label, variant in lyra_table.VARIANTS.items():
        outcomes, usage = play(trace, variant, cluster(100), 2 * 86400.0, 1)
        assert all(job.end_s is not None for job in outcomes), label
        assert all(0.0 <= share <= 1.0 for share in usage.values()), label
        assert ("usage_on_loan" in usage) == variant.loans, label


def test_rows_stand_beside_the_papers_and_say_what_was_fitted(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    sizes = (8, 16, 64, 24, 40)
    lines = [f"job{number},{300 * number},{3600 + 600 * (number % 7)},{sizes[number % 5]}" for number in range(60)]
    path.write_text("\n".join(["name,submit_s,duration_s,gpus", *lines, ""]), "utf-8")
    rows = {
        row.label: row
        for row in lyra_table.reproduce(
            Settings(cases=0, seed=1, out=tmp_path, trace=path, days=1.0), Progress(quiet=True)
        )
    }
    assert list(rows) == list(lyra_table.VARIANTS)
    assert [label for label, row in rows.items() if row.paper] == ["Baseline", "Basic", "Advanced", "Ideal"]
    assert rows["Baseline"].fitted == ("usage_training",) and not rows["Ideal"].fitted
    assert rows["Baseline"].here["usage_training"] == pytest.approx(0.72, abs=0.06)
    assert rows["Baseline"].here["jct_mean_times"] == 1.0
    assert rows["Ideal"].here["jct_mean_times"] > 1.0
    assert "columns are in the paper's order" in rows["Ideal"].note


def test_the_synthetic_trace_of_fewer_days_is_the_beginning_of_the_whole(tmp_path: Path) -> None:
    whole, two_days = (
        lyra_table.trace_of(Settings(cases=0, seed=1, out=tmp_path, days=days)).jobs for days in (14.0, 2.0)
    )
    assert two_days == tuple(job for job in whole if job.submit_s < 2 * 86400.0)
    assert 0 < len(two_days) < len(whole) == lyra_table.JOBS


@pytest.mark.parametrize("name", ["lyra-table", "philly-failures"])
@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ("a,0,100000,4000\nb,1,10,8", "the jobs of this trace would need a cluster of "),
        ("a,0,10,100\nb,3600,10,100", "every job of this trace asks for more GPUs than its cluster here has, "),
    ],
)
def test_a_trace_that_no_cluster_suits_is_refused_in_a_line(
    name: str, jobs: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(f"name,submit_s,duration_s,gpus\n{jobs}\n", "utf-8")
    assert main(["reproduce", name, "--trace", str(path), "--days", "1", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith(said)


def test_jobs_that_are_left_out_are_counted_below_the_table(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("name,submit_s,duration_s,gpus\na,0,10,1\nb,1,10,60\nc,3600,10,1\n", "utf-8")
    asked = Settings(cases=0, seed=1, out=tmp_path, trace=path, days=1.0)
    (baseline, *_) = lyra_table.reproduce(asked, Progress(quiet=True))
    assert baseline.note == "left out: 1 of 3 jobs, which ask for more than 8 GPUs"
    (first, *_) = philly_failures.reproduce(asked, Progress(quiet=True))
    assert first.note == "left out: 1 of 3 jobs, which ask for more than 16 GPUs"


def test_the_papers_columns_are_in_their_own_order() -> None:
    paper = lyra_table.with_factors(lyra_table.PAPER_ROWS)
    assert all(lyra_table.in_order(paper, key) for key in lyra_table.COMPARED)
    assert [round(paper[label]["jct_mean_times"], 2) for label in ("Basic", "Advanced", "Ideal")] == [1.48, 1.59, 1.87]


def test_a_replay_lends_gpus_of_another_type(tmp_path: Path) -> None:
    rows = lyra_replay.ROWS
    fabric = cluster(4).fabric
    trace = window(TRACE, 0.0, 6 * 3600.0)
    small = replace(trace, jobs=tuple(replace(job, gpus=8, duration_s=3600.0) for job in trace.jobs[:12]))
    jct = {}
    for label, row in rows.items():
        done = lyra_replay.replayed(fabric, small, row, "ecmp", 1, 86400.0)
        ended = [job.jct_s for job in done.jobs if job.jct_s is not None]
        assert len(ended) == len(done.jobs) > 0, label
        jct[label] = sum(ended) / len(ended)
    assert jct["Lyra, V100s on loan"] <= jct["Lyra, T4s on loan"] + 1e-6


def test_replays_with_loans_have_spreads_and_say_what_they_differ_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lyra_replay, "clos_of_the_paper", lambda: cluster(4).fabric)
    path = tmp_path / "trace.csv"
    lines = [f"job{number},{60 * number},900,{8 * (1 + number % 2)}" for number in range(12)]
    path.write_text("\n".join(["name,submit_s,duration_s,gpus", *lines, ""]), "utf-8")
    asked = Settings(cases=0, seeds=2, days=0.1, trace=path, out=tmp_path)
    first, *others = lyra_replay.reproduce(asked, Progress(quiet=True))
    spreads = {f"{name}_utilization_{of}_spread" for name in lyra_replay.SCHEDULERS for of in ("seed", "numerical")}
    assert all(spreads | {"crux_points", "crux_points_spread"} <= row.here.keys() for row in (first, *others))
    assert all({"ecmp_loans_points_spread", "crux_loans_points_spread"} <= row.here.keys() for row in others)
    alone = lyra_replay.reproduce(replace(asked, seeds=1), Progress(quiet=True))[1]
    assert "crux_points" in alone.here and "crux_points_spread" not in alone.here


def test_the_papers_run_times_say_how_much_of_them_elastic_jobs_have_at_least() -> None:
    halved = {"jct_mean_s": 60.0, "queue_mean_s": 10.0}
    assert lyra_table.least_elastic_share(halved, {"jct_mean_s": 150.0, "queue_mean_s": 50.0}) == pytest.approx(1.0)
    rows = lyra_table.PAPER_ROWS
    assert lyra_table.least_elastic_share(rows["Basic"], rows["Baseline"]) == pytest.approx(0.637, abs=0.001)


def test_elastic_jobs_share_of_run_times_counts_those_that_may_grow() -> None:
    jobs = jobs_of(TRACE, Variant(), 1408, 1)
    growing = [job for job in jobs if job.max_gpus and job.max_gpus > job.gpus]
    share = sum(job.duration_s or 0.0 for job in growing) / sum(job.duration_s or 0.0 for job in jobs)
    assert lyra_table.elastic_run_share(jobs) == pytest.approx(share)
    assert 0.0 < share < 0.5
