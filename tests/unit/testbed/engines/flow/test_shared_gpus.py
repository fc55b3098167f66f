"""Jobs on the same GPUs: the interleaving of Muri (SIGCOMM 2022), its worked examples, in the flow engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.api import run_scenario

RATE = 12.5e9
FABRIC = {
    "kind": "clos",
    "hosts": 2,
    "gpus_per_host": 2,
    "nics_per_host": 1,
    "tors": 1,
    "aggregations": 1,
    "port_rate": "100Gbps",
    "fabric_rate": "100Gbps",
}


def job(name: str, compute_s: float, communication_s: float, **where: Any) -> dict[str, Any]:
    """A ring over two hosts: each port sends as many bytes as a GPU hands over."""
    return {
        "name": name,
        "model": "bert",
        "compute": f"{compute_s}s",
        "overlap": 0,
        "iterations": 1000,
        "communication": f"{communication_s * RATE:.0f}B",
        **where,
    }


def ran(folder: Path, *jobs: dict[str, Any], **more: Any) -> dict[str, Any]:
    path = folder / "shared.yaml"
    measure = {"iterations": 60, "warmup": 4, "time_limit": "1000s"}
    document = {"fabric": FABRIC, "jobs": list(jobs), "schedulers": ["ecmp"], "measure": measure, **more}
    path.write_text(yaml.safe_dump(document))
    (run,) = run_scenario(str(path), engine="flow", out=folder / "runs").summary["runs"]
    return dict(run)


def iterations(run: dict[str, Any]) -> list[float]:
    return [entry["iteration_s"]["mean"] for entry in run["jobs"]]


TWO_HOSTS = {"placement": ["h0g0", "h1g0"]}


def test_complements_leave_no_gpu_idle(tmp_path: Path) -> None:
    run = ran(tmp_path, job("a", 2, 1, **TWO_HOSTS), job("b", 1, 2, share_gpus_with="a"))
    assert iterations(run) == pytest.approx([3.0, 3.0], rel=1e-3)
    assert run["gpu_utilization"] == pytest.approx(1.0, abs=0.03)
    assert [entry["gpu_utilization"] for entry in run["jobs"]] == pytest.approx([2 / 3, 1 / 3], abs=0.03)


def test_two_jobs_of_one_kind_take_turns_on_the_gpu(tmp_path: Path) -> None:
    run = ran(tmp_path, job("a", 2, 1, **TWO_HOSTS), job("b", 2, 1, share_gpus_with="a"))
    assert iterations(run) == pytest.approx([4.0, 4.0], rel=1e-3)


def test_jobs_that_send_for_longer_share_the_network_too(tmp_path: Path) -> None:
    run = ran(tmp_path, job("a", 1, 2, **TWO_HOSTS), job("b", 1, 2, share_gpus_with="a"))
    assert iterations(run) == pytest.approx([4.0, 4.0], rel=1e-2)


def test_each_of_three_waits_for_the_other_two(tmp_path: Path) -> None:
    run = ran(
        tmp_path, job("a", 1, 0, **TWO_HOSTS), job("b", 2, 0, share_gpus_with="a"), job("c", 3, 0, share_gpus_with="a")
    )
    assert iterations(run) == pytest.approx([6.0, 6.0, 6.0], rel=1e-3)
    assert run["gpu_utilization"] == pytest.approx(1.0, abs=0.05)


def test_a_job_beside_them_on_other_gpus_of_the_host_never_waits(tmp_path: Path) -> None:
    run = ran(
        tmp_path,
        job("a", 2, 0, placement=["h0g0"]),
        job("b", 2, 0, share_gpus_with="a"),
        job("c", 2, 0, placement=["h0g1"]),
    )
    assert iterations(run) == pytest.approx([4.0, 4.0, 2.0], rel=1e-3)
