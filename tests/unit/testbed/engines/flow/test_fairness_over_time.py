"""A job that loses throughput rises while nobody arrives or departs, where Crux is told to be fair."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from benchmarks.common import TWO_TORS
from testbed.api import prepare
from testbed.engines.flow.cluster import FlowCluster
from testbed.engines.flow.engine import FlowEngine
from testbed.experiment.experiment import UNSCALED
from testbed.results.record import RunRecord


def run(folder: Path, fairness: float) -> RunRecord:
    """Two jobs that need the one link between the ToRs most of the time; ``intense`` computes more for it."""
    common = {"collective": "alltoall", "communication": "12GB", "overlap": 0, "model": "bert"}
    jobs = [
        {"name": "intense", "placement": ["h0", "h2"], "compute": "0.6s", **common},
        {"name": "starved", "placement": ["h1", "h3"], "compute": "0.2s", **common},
    ]
    document = {
        "fabric": TWO_TORS,
        "jobs": jobs,
        "schedulers": [{"name": "crux", "fairness": fairness}],
        "levels": 2,
        "measure": {"iterations": 40, "warmup": 1, "time_limit": "200s"},
    }
    path = folder / "fair.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    (experiment,) = prepare(str(path), engine="flow").experiments
    return FlowEngine().run(experiment, folder, lambda _message: None)


@pytest.mark.parametrize("fairness", [0.0, 1.0])
def test_levels_follow_lost_throughput_every_ten_seconds(tmp_path: Path, fairness: float) -> None:
    rows = run(tmp_path, fairness).decisions
    timed = [row for row in rows if row.cause == "recent throughput"]
    if fairness == 0:
        assert not timed
        return
    assert [round(row.time_s, 6) for row in timed[:2]] == [10.0, 20.0]
    assert rows[1].decision.levels == {"intense": 0, "starved": 1}
    assert timed[0].decision.levels == {"starved": 0, "intense": 1}
    assert timed[0].levels_changed == 2


def test_a_job_that_ends_no_iteration_rises_too() -> None:
    (experiment,) = prepare("philly-servers", engine="flow", schedulers=["crux-fair"]).experiments
    cluster = FlowCluster(replace(experiment, scale=UNSCALED))
    while cluster.now < 50.0:
        cluster.step()
    crowd = [f"crowd-{number}" for number in range(4)]
    levels = [row.decision.levels for row in cluster.decisions if row.cause == "recent throughput"]
    assert all(levels[0]["crowd-3"] < levels[0][other] for other in ("crowd-0", "crowd-1"))  # it was last until then
    assert min(crowd, key=levels[1].__getitem__) == "crowd-3"
    assert {max(crowd, key=each.__getitem__) for each in levels} == set(crowd)
    assert min(cluster.jobs[job].completed for job in crowd) > 0
