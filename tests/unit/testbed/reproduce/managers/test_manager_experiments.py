"""Experiments on cluster managers: examples as printed, and every manager with every scheduler on a small trace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from testbed.progress import Progress
from testbed.reproduce import kept_replays
from testbed.reproduce.managers import lyra_table, tiresias_example
from testbed.reproduce.managers.managers_x_schedulers import managers_by_schedulers
from testbed.reproduce.paper_experiment import Settings
from topologies.clos import clos
from workloads.managers.catalogue import MANAGERS, named_manager
from workloads.traces.synthetic import lingjun_like

SMALL = clos(hosts=8, gpus_per_host=8, nics_per_host=4, tors=4, aggregations=2, port_rate=100e9, fabric_rate=100e9)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cases=0, seed=1, processes=1, out=tmp_path)


def test_tiresias_example_comes_out_as_printed(settings: Settings) -> None:
    for row in tiresias_example.reproduce(settings, Progress(quiet=True)):
        assert row.here == pytest.approx(row.paper), row.label


def test_every_manager_has_its_parts() -> None:
    for name in MANAGERS:
        assert named_manager(name).policy.name == MANAGERS[name].policy
    with pytest.raises(
        ValueError, match="unknown manager 'borg', expected one of capacity-scheduler, consolidated, fair"
    ):
        named_manager("borg")


def test_managers_are_compared_on_one_trace_and_drawn(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_replays, "FABRICS", {"clos": lambda: SMALL})
    trace = tmp_path / "trace.csv"
    lines = [f"job{number},{60 * number},600,{2 ** (number % 6)}" for number in range(30)]
    trace.write_text("\n".join(["name,submit_s,duration_s,gpus", *lines, ""]), "utf-8")
    asked = replace(settings, trace=trace, days=0.2)
    names = ("none", "tiresias", "gandiva", "kubernetes")
    rows = managers_by_schedulers(asked, Progress(quiet=True), names, ("ecmp", "crux"))
    assert [row.label for row in rows] == list(names)
    assert all(0.0 < row.here[name] <= 1.0 for row in rows for name in ("ecmp", "crux"))
    by_name = {row.label: row.here for row in rows}
    assert by_name["gandiva"]["preemptions"] > by_name["none"]["preemptions"] == 0
    assert (tmp_path / "managers-x-schedulers.svg").is_file()


def test_lyras_rows_are_in_the_order_of_the_paper_on_a_small_trace(settings: Settings, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    sizes = (8, 16, 64, 256, 700)
    lines = [f"job{number},{300 * number},{3600 + 600 * (number % 7)},{sizes[number % 5]}" for number in range(60)]
    trace.write_text("\n".join(["name,submit_s,duration_s,gpus", *lines, ""]), "utf-8")
    rows = {
        row.label: row for row in lyra_table.reproduce(replace(settings, trace=trace, days=1.0), Progress(quiet=True))
    }
    assert list(rows) == ["Baseline", "loans only", "elastic jobs only", "Basic", "Advanced", "Ideal"]
    assert rows["Baseline"].here["jct_times"] == 1.0
    assert rows["Ideal"].here["jct_times"] > rows["Basic"].here["jct_times"] > 1.0
    assert rows["Advanced"].here == {} and rows["Advanced"].note


def test_elastic_jobs_are_drawn_until_they_have_their_share_of_the_gpu_time() -> None:
    trace = lingjun_like(1, gpus=2000, jobs=500, gpu_share=1.0, keep_peaks=False)
    jobs = lyra_table.jobs_of(trace, 0.36, 1)
    whole = sum(job.gpus * (job.duration_s or 0) for job in jobs)
    elastic = sum(job.gpus * (job.duration_s or 0) for job in jobs if job.max_gpus is not None)
    assert 0.36 <= elastic / whole < 0.6
    assert all(job.min_gpus is None for job in lyra_table.jobs_of(trace, 0.0, 1))
