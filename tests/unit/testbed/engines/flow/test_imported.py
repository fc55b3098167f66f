"""Jobs from files in the flow engine: alone they take what a closed form of their rows says."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from testbed.api import prepare
from testbed.engines.flow.engine import FlowEngine
from testbed.metrics.job_metrics import job_metrics
from tools.simai_workloads import GPT_13B, files

ROOT = Path(__file__).parents[5]
RATE = 100e9 / 8
FABRIC = {"kind": "rail-optimized", "hosts": 4, "segments": 2, "aggregations": 4}
HEADER = "HYBRID_TRANSFORMER model_parallel_NPU_group: 8 ep: 2 all_gpus: 32"


def iteration_s(folder: Path, text: str, **model: object) -> float:
    """Seconds of an iteration of the workload alone on 32 GPUs."""
    (folder / "workload.txt").write_text(text, "utf-8")
    scenario = {
        "fabric": {**FABRIC, "port_rate": "100Gbps", "fabric_rate": "100Gbps"},
        "jobs": [{"name": "a", "model": {"simai": "workload.txt", **model}, "gpus": 32}],
        "schedulers": ["crux"],
        "measure": {"iterations": 3, "warmup": 1},
    }
    path = folder / "own.yaml"
    path.write_text(yaml.safe_dump(scenario), "utf-8")
    (experiment,) = prepare(str(path), engine="flow").experiments
    times = job_metrics(FlowEngine().run(experiment, folder, lambda _message: None), experiment.jobs[0]).times
    assert times is not None
    return times.mean


def test_gpt_takes_its_compute_and_the_exchange_of_its_parameters(tmp_path: Path) -> None:
    text = files()["gpt-13b-tensor8.txt"]
    rows = [line.split() for line in text.splitlines()[2:]]
    compute_s = sum(int(row[place]) for row in rows for place in (2, 5, 8)) * 1e-9
    # Data groups of 4: gather 2 bytes and scatter 4 bytes of an eighth of the parameters, both at the end.
    exchanged = 3 / 4 * (2 + 4) * GPT_13B.parameters / 8
    assert iteration_s(tmp_path, text) == pytest.approx(compute_s + exchanged / RATE, rel=0.01)


def test_the_bundled_jobs_contend_under_ecmp_and_on_1024_gpus_too(tmp_path: Path) -> None:
    example = ROOT / "docs" / "examples" / "multi_tenant" / "multi-tenant-1024.yaml"
    for scenario, gpus in (("multi-tenant", 64), (str(example), 1024)):
        busy: dict[str, float] = {}
        for experiment in prepare(scenario, engine="flow", schedulers=["ecmp", "crux"]).experiments:
            record = FlowEngine().run(experiment, tmp_path, lambda _message: None)
            times = {job.name: job_metrics(record, job).times for job in experiment.jobs}
            busy[record.scheduler] = sum(each.mean for each in times.values() if each is not None)
            assert sum(len(job.gpus) for job in experiment.jobs) == gpus
        assert busy["crux"] < 0.99 * busy["ecmp"]


def test_experts_wait_for_every_all_to_all(tmp_path: Path) -> None:
    rows = [
        "layer -1 1000000 ALLTOALL_EP 40000000 2000000 ALLTOALL_EP 20000000 1000000 NONE 0 1",
        "layer -1 3000000 ALLREDUCE 5000000 1000000 NONE 0 1000000 ALLREDUCE 64000000 1",
    ]
    # Experts in pairs of GPUs on two hosts, a half of each all-to-all; data groups of 4, all of them across hosts.
    waited = (40e6 + 20e6) / 2
    # The allreduce of weights begins 1 + 1 ms into the way back, beside the first layer's all-to-all of gradients.
    text = "\n".join([HEADER, "2", *rows])
    compute_s, background = 9e-3, 2 * 3 / 4 * 64e6 / RATE
    after_s = 3e-3
    shared = waited / 3 / RATE  # 20 MB of the all-to-all share the NIC with the allreduce
    expected = compute_s - after_s + 20e6 / RATE + max(after_s + shared, background + shared)
    assert iteration_s(tmp_path, text) == pytest.approx(expected, rel=0.01)
