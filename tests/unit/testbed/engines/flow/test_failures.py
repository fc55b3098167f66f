"""Cables that fail in the flow engine: paths are decided anew, and again when the cable is back."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from testbed.api import prepare, run_scenario
from testbed.engines.flow.engine import FlowEngine
from testbed.experiment.failures import Failure
from testbed.report.tables import show_summary
from testbed.results.record import RunRecord
from testbed.results.run_directory import RunDirectory

TWO_WAYS = {
    "kind": "clos",
    "hosts": 4,
    "gpus_per_host": 1,
    "nics_per_host": 1,
    "tors": 2,
    "aggregations": 2,
    "port_rate": "100Gbps",
    "fabric_rate": "100Gbps",
}


def scenario(folder: Path, failures: list[dict[str, Any]], scheduler: str = "crux") -> Path:
    jobs = [
        {
            "name": name,
            "model": "bert",
            "placement": hosts,
            "collective": "alltoall",
            "compute": "1s",
            "communication": "25GB",
            "overlap": 0,
        }
        for name, hosts in (("one", ["h0", "h2"]), ("two", ["h1", "h3"]))
    ]
    path = folder / "failing.yaml"
    document = {
        "fabric": TWO_WAYS,
        "jobs": jobs,
        "schedulers": [scheduler],
        "levels": 1,
        "failures": failures,
        "measure": {"iterations": 30, "warmup": 1, "time_limit": "200s"},
    }
    path.write_text(yaml.safe_dump(document), "utf-8")
    return path


def run(path: Path) -> RunRecord:
    (experiment,) = prepare(str(path), engine="flow").experiments
    return FlowEngine().run(experiment, path.parent, lambda _message: None)


def iteration_times(record: RunRecord, since_s: float, until_s: float) -> list[float]:
    return [row.end_s - row.start_s for row in record.iterations if since_s <= row.start_s and row.end_s <= until_s]


@pytest.mark.parametrize("named", ["tor0->agg0", "agg0->tor0"])
def test_while_a_cable_is_down_both_jobs_share_the_one_that_is_left(named: str, tmp_path: Path) -> None:
    record = run(scenario(tmp_path, [{"link": named, "at": "20s", "until": "50s"}]))
    # Each has a way of its own, 1 s of compute and 1 s of communication; on one way communication takes 2 s.
    for begin, end, expected in ((0.0, 20.0, 2.0), (22.0, 50.0, 3.0), (53.0, 60.0, 2.0)):
        times = iteration_times(record, begin, end)
        assert times
        assert times == pytest.approx([expected] * len(times), rel=1e-4)


def test_every_decision_while_a_cable_is_down_avoids_it(tmp_path: Path) -> None:
    for scheduler in ("ecmp", "hedera", "taccl-star", "cassini", "sincronia", "varys"):
        record = run(scenario(tmp_path, [{"link": "tor1->agg1", "at": "5s"}], scheduler))
        causes = [row.cause for row in record.decisions]
        assert causes[-1] == "tor1->agg1 failed"
        used = {link for path in record.decisions[-1].decision.paths.values() for link in path}
        assert used and not used & {"tor1->agg1", "agg1->tor1"}


def test_a_run_with_failures_is_written_and_read_back(tmp_path: Path) -> None:
    path = scenario(tmp_path, [{"link": "tor1->agg1", "at": "5s"}, {"link": "tor0->agg1", "at": "7s", "until": "9s"}])
    made = run_scenario(str(path), engine="flow", out=tmp_path)
    experiment = RunDirectory.open(made.directory).read_experiment()
    assert experiment.failures == (Failure("tor1->agg1", 5.0), Failure("tor0->agg1", 7.0, 9.0))
    resolved = prepare(str(made.directory / "scenario.yaml"), engine="flow").experiments[0]
    assert resolved.failures == experiment.failures


def test_a_failure_that_was_to_come_after_the_end_of_a_run_is_a_line(tmp_path: Path) -> None:
    failures = [{"link": "tor1->agg1", "at": "5s"}, {"link": "tor0->agg1", "at": "150s"}]
    made = run_scenario(str(scenario(tmp_path, failures)), engine="flow", out=tmp_path)
    (line,) = made.summary["failures_not_reached"]
    assert line.startswith("crux: tor0->agg1 was to fail at 150 s, the run ended after ")
    console = Console(record=True, width=200, file=io.StringIO())
    show_summary(made.summary, console)
    assert line in console.export_text()
    assert line in (made.directory / "report.html").read_text("utf-8").replace("-\\u003e", "->")
