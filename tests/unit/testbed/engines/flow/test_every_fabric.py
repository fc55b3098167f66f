"""Every scheduler runs on every kind of fabric with rails, dual ToRs and planes; jobs alone on them take their time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.api import prepare
from testbed.engines.flow.engine import FlowEngine
from testbed.metrics.job_metrics import job_metrics

HOSTS = {"hosts": 8, "gpus_per_host": 2, "nics_per_host": 2, "segments": 2, "fabric_rate": "200Gbps"}
FABRICS: dict[str, dict[str, Any]] = {
    "rail-optimized": {"kind": "rail-optimized", "aggregations": 2, "port_rate": "200Gbps"},
    "hpn": {"kind": "hpn", "aggregations": 2, "planes": 1, "port_rate": "100Gbps"},
    "hpn-planes": {"kind": "hpn", "aggregations": 4, "port_rate": "100Gbps"},
    "dcn+": {"kind": "dcn+", "aggregations": 2, "port_rate": "200Gbps"},
    "dcn+-dual": {"kind": "dcn+", "aggregations": 2, "tors_per_segment": 2, "port_rate": "100Gbps"},
}
TWO_JOBS = [
    {"name": "one", "model": "bert", "placement": ["h0", "h1", "h4", "h5"]},
    {"name": "two", "model": "moe", "placement": ["h2", "h3", "h6", "h7"]},
]
SCHEDULERS = [
    *("cassini", "crux", "crux-pa", "crux-ps-pa", "ecmp", "hedera", "ideal", "lina", "pfabric", "pias"),
    *("mltcp", "sglb", "sincronia", "taccl-star", "varys", "varys-priority"),
]


def scenario(folder: Path, fabric: str, jobs: list[dict[str, Any]], schedulers: list[str]) -> str:
    path = folder / "own.yaml"
    document = {
        "fabric": {**HOSTS, **FABRICS[fabric]},
        "jobs": jobs,
        "schedulers": schedulers,
        "measure": {"iterations": 3, "warmup": 1, "time_limit": "60s"},
    }
    path.write_text(yaml.safe_dump(document), "utf-8")
    return str(path)


@pytest.mark.parametrize("fabric", FABRICS)
def test_every_scheduler_runs(fabric: str, tmp_path: Path) -> None:
    for experiment in prepare(scenario(tmp_path, fabric, TWO_JOBS, SCHEDULERS), engine="flow").experiments:
        record = FlowEngine().run(experiment, tmp_path, lambda _message: None)
        for job in experiment.jobs:
            times = job_metrics(record, job).times
            assert times is not None and times.mean > 0


@pytest.mark.parametrize("fabric", FABRICS)
def test_an_allreduce_inside_a_segment_takes_its_bytes_over_its_rate(fabric: str, tmp_path: Path) -> None:
    jobs = [
        {
            "name": "one",
            "model": "bert",
            "placement": ["h0", "h1", "h2"],
            "collective": "hierarchical",
            "compute": "1s",
            "communication": "60GB",
            "overlap": 0,
        }
    ]
    (experiment,) = prepare(scenario(tmp_path, fabric, jobs, ["ecmp"]), engine="flow").experiments
    times = job_metrics(FlowEngine().run(experiment, tmp_path, lambda _message: None), experiment.jobs[0]).times
    assert times is not None
    # 2 (n - 1) / n of 30 GB per rail, at 25 GB/s per NIC: no hash can put rails or ports on one link.
    assert times.mean == pytest.approx(1 + 2 * 2 / 3 * 30 / 25, rel=2e-3)
