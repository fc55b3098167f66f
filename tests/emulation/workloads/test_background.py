"""A gradient exchange in the background of the same job's all-to-alls, on packets."""

from __future__ import annotations

import pytest
from emulation_runs import Finished, run_text

from testbed.api import prepare
from workloads.analysis import isolated

pytestmark = pytest.mark.emulation

SCENARIO = """
fabric: {kind: clos, hosts: 8, gpus_per_host: 1, nics_per_host: 1, tors: 1, aggregations: 1,
         port_rate: 100Gbps, fabric_rate: 100Gbps}
jobs:
  - {name: moe, model: moe, placement: [h0, h1, h2, h3], compute: 0.4s, communication: 15GB, overlap: 0,
     gradients: {background: true}}
  - {name: last, model: moe, placement: [h4, h5, h6, h7], compute: 0.4s, communication: 15GB, overlap: 0}
schedulers: [ecmp, lina]
measure: {iterations: 4, warmup: 1, time_limit: 60s}
scale: {bandwidth: 2500, time: 1}
"""


@pytest.fixture(scope="module")
def background(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_text(SCENARIO, tmp_path_factory.mktemp("background"))


def test_all_to_alls_have_a_level_of_their_own_under_lina_only(background: Finished) -> None:
    first = {flow: level for flow, level in background.decisions("lina")[-1]["levels"].items() if level == 0}
    assert first and all(":alltoall" in flow for flow in first)
    assert not background.decisions("ecmp")[-1]["levels"]


def test_gradients_behind_all_to_alls_save_what_the_analysis_says(background: Finished) -> None:
    background.skip_if_disturbed()
    (experiment, *_) = prepare(str(background.directory / "scenario.yaml"), engine="flow").experiments
    expected = {job.name: isolated(job, experiment.fabric).iteration_s for job in experiment.jobs}
    assert expected["moe"] < 0.85 * expected["last"]
    for scheduler in ("ecmp", "lina"):
        # An all-to-all takes some packets longer than links shared evenly, in both jobs: one is measured by the other.
        steps = {name: background.job(scheduler, name)["iteration_s"]["mean"] for name in expected}
        assert steps["moe"] / steps["last"] == pytest.approx(expected["moe"] / expected["last"], rel=0.05)
        assert expected["last"] < steps["last"] < 1.06 * expected["last"]
