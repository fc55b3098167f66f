"""A gradient exchange in the background of the same job's all-to-alls, on packets."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulation_runs import Finished, run_text

from testbed.api import prepare
from workloads.analysis import isolated

pytestmark = pytest.mark.emulation

SCENARIO = """
fabric: {kind: clos, hosts: 4, gpus_per_host: 1, nics_per_host: 1, tors: 1, aggregations: 1,
         port_rate: 100Gbps, fabric_rate: 100Gbps}
jobs:
  - {name: moe, model: moe, placement: [h0, h1, h2, h3], compute: 0.4s, communication: 15GB, overlap: 0,
     gradients: {background: true}}
schedulers: [ecmp, lina]
measure: {iterations: 8, warmup: 2, limit: 60s}
scale: {bandwidth: 2500, time: 1}
"""


@pytest.fixture(scope="module")
def background(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_text(SCENARIO, tmp_path_factory.mktemp("background"))


def test_all_to_alls_have_a_level_of_their_own_under_lina_only(background: Finished) -> None:
    first = {flow: level for flow, level in background.decisions("lina")[-1]["levels"].items() if level == 0}
    assert first and all(":alltoall:" in flow for flow in first)
    assert not background.decisions("ecmp")[-1]["levels"]


def test_a_step_with_all_to_alls_first_takes_what_the_analysis_says(background: Finished, tmp_path: Path) -> None:
    background.skip_if_disturbed()
    (experiment, *_) = prepare(str(background.directory / "scenario.yaml"), engine="flow").experiments
    expected = isolated(experiment.jobs[0], experiment.fabric).iteration_s
    steps = {name: background.job(name, "moe")["iteration_s"]["mean"] for name in ("ecmp", "lina")}
    assert steps["lina"] == pytest.approx(expected, rel=0.03)
    assert steps["lina"] <= steps["ecmp"] * 1.01
