"""A gradient exchange in the background: beside the all-to-alls of its own job, and who waits for whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.api import prepare, run_scenario
from workloads.analysis import isolated

HOSTS, RATE = 4, 12.5e9
FABRIC = {
    "kind": "clos",
    "hosts": HOSTS,
    "gpus_per_host": 1,
    "nics_per_host": 1,
    "tors": 1,
    "aggregations": 1,
    "port_rate": "100Gbps",
    "fabric_rate": "100Gbps",
}
COMPUTE = 0.6
BYTES = {"alltoall": 188743680.0 * 4, "gradient": 384172032.0}
"""Of the model, as a ratio: the job's bytes are these, scaled to ``TOTAL``."""
TOTAL = 15e9


def seconds(kind: str) -> float:
    """On a port: an all-to-all sends 3/4 of its bytes, a ring 2 * 3/4."""
    share = BYTES[kind] / sum(BYTES.values()) * TOTAL
    return share * (1.5 if kind == "gradient" else 0.75) / RATE


def iteration_s(folder: Path, scheduler: str, **gradients: Any) -> float:
    job = {
        "name": "moe",
        "model": "moe",
        "placement": [f"h{host}" for host in range(HOSTS)],
        "compute": f"{COMPUTE}s",
        "communication": f"{TOTAL:.0f}B",
        "overlap": 0,
        "gradients": gradients,
    }
    path = folder / "background.yaml"
    measure = {"iterations": 5, "warmup": 1}
    path.write_text(yaml.safe_dump({"fabric": FABRIC, "jobs": [job], "schedulers": [scheduler], "measure": measure}))
    (run,) = run_scenario(str(path), engine="flow", out=folder / "runs").summary["runs"]
    return float(run["jobs"][0]["iteration_s"]["mean"])


def test_after_the_all_to_alls_everything_adds_up(tmp_path: Path) -> None:
    whole = COMPUTE + seconds("alltoall") + seconds("gradient")
    assert iteration_s(tmp_path, "ecmp") == pytest.approx(whole, rel=1e-3)


def test_with_all_to_alls_first_the_exchange_fills_the_gaps_they_leave(tmp_path: Path) -> None:
    # Forward: a third of the compute and half of the all-to-alls; from then on the link is busy, or GPUs compute.
    forward, backward = COMPUTE / 3 + seconds("alltoall") / 2, 2 * COMPUTE / 3 + seconds("alltoall") / 2
    expected = forward + max(backward, seconds("alltoall") / 2 + seconds("gradient"))
    assert iteration_s(tmp_path, "lina", background=True) == pytest.approx(expected, rel=1e-3)
    (experiment,) = prepare(str(tmp_path / "background.yaml"), engine="flow").experiments
    assert isolated(experiment.jobs[0], experiment.fabric).iteration_s == pytest.approx(expected, rel=1e-6)


def test_sharing_evenly_the_exchange_holds_the_all_to_alls_up(tmp_path: Path) -> None:
    first = iteration_s(tmp_path, "lina", background=True, compression=0.5)
    evenly = iteration_s(tmp_path, "ecmp", background=True, compression=0.5)
    assert first < evenly <= COMPUTE + seconds("alltoall") + 0.5 * seconds("gradient") + 1e-3


def test_a_model_without_all_to_alls_has_nothing_to_go_on_beside(tmp_path: Path) -> None:
    from testbed.errors import BadInputError

    path = tmp_path / "wrong.yaml"
    job = {"name": "one", "model": "bert", "gpus": 4, "gradients": {"background": True}}
    path.write_text(yaml.safe_dump({"fabric": FABRIC, "jobs": [job], "schedulers": ["ecmp"]}))
    with pytest.raises(BadInputError, match=r"wrong.yaml:\d+: job 'one'.*gradients.background needs all-to-alls"):
        prepare(str(path), engine="flow")
