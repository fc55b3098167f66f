"""The flow engine against closed forms and exact schedules: real scenarios, no packets, no root."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.common import TWO_TORS, Run
from benchmarks.contention import CONTESTS, Contest, Times
from benchmarks.validation import worst_error
from controller.decision import Decision
from testbed.api import prepare, run_scenario
from testbed.engines.flow.cluster import FlowCluster
from testbed.engines.flow.engine import FlowEngine
from testbed.experiment.experiment import UNSCALED
from testbed.metrics.job_metrics import job_metrics
from testbed.results.record import RunRecord
from workloads.analysis import isolated

RATE = 12.5e9
"""Bytes per second of a port."""


def job(name: str, hosts: list[str], **values: Any) -> dict[str, Any]:
    return {
        "name": name,
        "model": "bert",
        "placement": hosts,
        "collective": "alltoall",
        "compute": "1s",
        "communication": "25GB",
        "overlap": 0,
        **values,
    }


def record_of(folder: Path, jobs: list[dict[str, Any]], scheduler: Any = "ecmp", **values: Any) -> RunRecord:
    document = {
        "name": "twin",
        "fabric": TWO_TORS,
        "channels": 1,
        "jobs": jobs,
        "schedulers": [scheduler],
        "measure": {"iterations": 10, "warmup": 2, "time_limit": "200s"},
        **values,
    }
    path = folder / "twin.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    (experiment,) = prepare(str(path), engine="flow").experiments
    return FlowEngine().run(experiment, folder, lambda _message: None)


def mean_iteration_s(record: RunRecord, name: str, folder: Path) -> float:
    (experiment,) = prepare(str(folder / "twin.yaml"), engine="flow").experiments
    (wanted,) = [each for each in experiment.jobs if each.name == name]
    times = job_metrics(record, wanted).times
    assert times is not None
    return times.mean


def test_a_job_alone_iterates_as_fast_as_the_analysis_says(tmp_path: Path) -> None:
    for collective in ("alltoall", "ring", "hierarchical"):
        for overlap in (0.0, 0.5, 1.0):
            jobs = [job("one", ["h0", "h1", "h2", "h3"], collective=collective, overlap=overlap)]
            record = record_of(tmp_path, jobs)
            (experiment,) = prepare(str(tmp_path / "twin.yaml"), engine="flow").experiments
            paths = record.decisions[-1].decision.paths
            exact = isolated(experiment.jobs[0], experiment.fabric, paths).iteration_s
            assert mean_iteration_s(record, "one", tmp_path) == pytest.approx(exact, rel=1e-3)


def test_two_jobs_of_one_level_share_a_link_evenly(tmp_path: Path) -> None:
    jobs = [job(name, hosts) for name, hosts in (("one", ["h0", "h2"]), ("two", ["h1", "h3"]))]
    record = record_of(tmp_path, jobs)
    # Each moves 12.5 GB each way: 1 s alone, 2 s beside the other, after 1 s of compute.
    assert mean_iteration_s(record, "one", tmp_path) == pytest.approx(3.0, rel=1e-3)
    assert mean_iteration_s(record, "two", tmp_path) == pytest.approx(3.0, rel=1e-3)


def test_the_higher_level_does_not_notice_the_lower(tmp_path: Path) -> None:
    jobs = [job("one", ["h0", "h2"]), job("two", ["h1", "h3"], compute="0.7s", communication="20GB")]
    record = record_of(tmp_path, jobs, {"name": "fixed", "levels": {"one": 0, "two": 1}})
    assert mean_iteration_s(record, "one", tmp_path) == pytest.approx(2.0, rel=1e-5)
    assert mean_iteration_s(record, "two", tmp_path) > 1.5 * 1.05


@pytest.mark.parametrize("contest", CONTESTS, ids=lambda contest: contest.name)
def test_two_jobs_follow_the_exact_strict_priority_schedule(contest: Contest, tmp_path: Path) -> None:
    document = {**contest.scenario(), "schedulers": [contest.scheduler()]}
    path = tmp_path / "contest.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    (experiment,) = prepare(str(path), engine="flow").experiments
    record = FlowEngine().run(experiment, tmp_path, lambda _message: None)
    sampled = replace(record, environment={"cpu": [[float(second)] for second in range(1, 60)]})
    found = contest.measured(Run(experiment, sampled, {}, ""))
    sides = [worst_error(contest, exact, found) for exact in (contest.exact(), contest.nearby())]
    between_samples = 0.015 if contest.name.startswith("hidden") else 0.0  # its window begins between two samples
    assert min(sides) <= 0.005 + between_samples


def test_example_2_with_the_second_job_first_stands_on_an_edge() -> None:
    (contest,) = [each for each in CONTESTS if each.name == "example-2-J2-first"]
    assert contest.exact()[1] == Times(3.0, 0.0)
    assert contest.nearby()[1].idle_s > 3.9


def test_a_rate_holds_a_job_back_and_a_shift_its_first_communication(tmp_path: Path) -> None:
    record = record_of(tmp_path, [job("one", ["h0", "h2"])], {"name": "fixed", "rates": {"one": "50Gbps"}})
    assert mean_iteration_s(record, "one", tmp_path) == pytest.approx(3.0, rel=1e-4)
    record = record_of(tmp_path, [job("one", ["h0", "h2"])], {"name": "fixed", "shifts": {"one": "0.25s"}})
    first = min((row for row in record.iterations if row.iteration == 0), key=lambda row: row.start_s)
    assert first.end_s - first.start_s == pytest.approx(2.25, rel=1e-4)


def test_a_job_that_arrives_and_one_that_ends_change_what_the_others_get(tmp_path: Path) -> None:
    jobs = [job("one", ["h0", "h2"]), job("two", ["h1", "h3"], start="8s", iterations=3)]
    record = record_of(tmp_path, jobs, measure={"iterations": 12, "warmup": 0, "time_limit": "200s"})
    lengths = {row.iteration: row.end_s - row.start_s for row in record.iterations if row.job == "one"}
    assert lengths[0] == pytest.approx(2.0, rel=1e-4) and lengths[11] == pytest.approx(2.0, rel=1e-4)
    assert max(lengths.values()) == pytest.approx(3.0, rel=1e-3)
    assert [row.cause for row in record.decisions] == ["arrival of one", "arrival of two", "departure of two"]


def test_a_job_that_has_just_arrived_takes_part_in_the_order_of_steps(tmp_path: Path) -> None:
    # BSSI puts the larger one last; the smaller arrives last.
    jobs = [job("large", ["h0", "h2"], communication="50GB"), job("small", ["h1", "h3"])]
    assert mean_iteration_s(record_of(tmp_path, jobs, "sincronia"), "small", tmp_path) == pytest.approx(2.0, rel=1e-3)


def test_levels_that_change_inside_rings_end_in_no_endless_taking_of_turns() -> None:
    (experiment,) = prepare("clos96.yaml", engine="flow", schedulers=["pfabric"]).experiments
    cluster = FlowCluster(replace(experiment, scale=UNSCALED))
    while cluster.now < 3.0:
        cluster.step()
        assert cluster.events < 10_000  # about 300 for each second


def test_every_byte_of_an_iteration_is_counted_on_every_link_of_its_path(tmp_path: Path) -> None:
    record = record_of(
        tmp_path, [job("one", ["h0", "h2"], iterations=6)], measure={"iterations": 5, "warmup": 1, "time_limit": "60s"}
    )
    (decision,) = [row.decision for row in record.decisions if row.cause == "arrival of one"]
    for path in decision.paths.values():
        for link in path:
            assert sum(row.bytes for row in record.links if row.link == link) == pytest.approx(6 * RATE, rel=1e-6)


@pytest.mark.parametrize(
    "scheduler",
    [
        "crux",
        "crux-pa",
        "ecmp-switch",
        "cassini",
        "hedera",
        "ideal",
        "pfabric",
        "pias",
        "sincronia",
        "taccl-star",
        "varys",
        "varys-priority",
    ],
)
def test_every_scheduler_runs_in_the_flow_engine(scheduler: str, tmp_path: Path) -> None:
    result = run_scenario("hello.yaml", engine="flow", schedulers=[scheduler], out=tmp_path)
    (run,) = result.summary["runs"]
    assert 0.5 < run["gpu_utilization"] <= 1.0
    assert run["fidelity"]["verdict"] == "ok"
    assert result.summary["engine"] == "flow"


def test_a_run_that_is_too_short_says_which_job_made_too_few_iterations(tmp_path: Path) -> None:
    from testbed.errors import RunFailedError

    with pytest.raises(RunFailedError, match=r"job one made \d iterations in 2 s, 12 were asked for"):
        record_of(tmp_path, [job("one", ["h0", "h2"])], measure={"iterations": 10, "warmup": 2, "time_limit": "2s"})


def test_the_same_experiment_gives_the_same_record(tmp_path: Path) -> None:
    jobs = [job("one", ["h0", "h2"], jitter=0.1), job("two", ["h1", "h3"], jitter=0.1)]
    first, second = record_of(tmp_path, jobs), record_of(tmp_path, jobs)
    assert first.iterations == second.iterations and first.links == second.links
    assert first.decisions[-1].decision == second.decisions[-1].decision != Decision()
