"""Inference of a mixture of experts: what unequal popularity costs, and what Lina's placement saves of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.api import run_scenario
from workloads.models.catalogue import CATALOGUE

HOSTS, RATE, TOTAL = 4, 12.5e9, 10e9
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
POPULARITY = [5, 1, 1, 1]


def iteration_s(folder: Path, compute: str = "1ms", **experts: Any) -> float:
    job = {
        "name": "moe",
        "model": "moe",
        "placement": [f"h{host}" for host in range(HOSTS)],
        "compute": compute,
        "communication": f"{TOTAL:.0f}B",
        "experts": {"inference": True, **experts},
    }
    path = folder / "experts.yaml"
    measure = {"iterations": 5, "warmup": 1}
    path.write_text(yaml.safe_dump({"fabric": FABRIC, "jobs": [job], "schedulers": ["ecmp"], "measure": measure}))
    (run,) = run_scenario(str(path), engine="flow", out=folder / "runs").summary["runs"]
    return float(run["jobs"][0]["iteration_s"]["mean"])


def exchanged_s(most: float) -> float:
    """Both all-to-alls, where the busiest GPU is sent the share ``most`` of the tokens of the three others."""
    return (HOSTS - 1) * TOTAL * most / RATE


def test_the_most_popular_expert_holds_everybody_up(tmp_path: Path) -> None:
    assert iteration_s(tmp_path, popularity=[1, 1, 1, 1]) == pytest.approx(exchanged_s(1 / 4), rel=0.01)
    assert iteration_s(tmp_path, popularity=POPULARITY) == pytest.approx(exchanged_s(5 / 8), rel=0.01)


def test_gpus_in_proportion_to_popularity_share_its_tokens(tmp_path: Path) -> None:
    # Of four GPUs three go to the popular expert and one to the next; the two others share with these.
    popular = iteration_s(tmp_path, popularity=POPULARITY, placement="popular")
    assert popular == pytest.approx(exchanged_s(5 / 24 + 1 / 8), rel=0.01)


def test_a_wrong_estimate_is_corrected_once_the_gate_has_spoken(tmp_path: Path) -> None:
    told = {"popularity": [1, 1, 1, 5], "routed": POPULARITY, "placement": "popular"}
    wrong, corrected = (iteration_s(tmp_path, corrected=each, **told) for each in (False, True))
    assert corrected == pytest.approx(iteration_s(tmp_path, popularity=POPULARITY, placement="popular"))
    assert wrong > 1.5 * corrected


def test_the_gpu_of_a_popular_expert_computes_longer_and_others_send_to_it_meanwhile(tmp_path: Path) -> None:
    # Before the first exchange the three others are ready first, before the second everybody waits for the busiest.
    compute_s = iteration_s(tmp_path, "1s", popularity=POPULARITY) - exchanged_s(5 / 8)
    of_experts = CATALOGUE["moe"].expert_share
    assert compute_s == pytest.approx(0.5 * (1 - 0.5 * of_experts) + 0.5 * (1 + 1.5 * of_experts), rel=1e-3)
