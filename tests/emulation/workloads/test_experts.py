"""Experts of unequal popularity on packets: the two all-to-alls of a forward pass, there and back."""

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
  - {name: even, model: moe, placement: [h0, h1, h2, h3], compute: 0.01s, communication: 4GB,
     experts: {popularity: [5, 1, 1, 1], inference: true}}
  - {name: popular, model: moe, placement: [h4, h5, h6, h7], compute: 0.01s, communication: 4GB,
     experts: {popularity: [5, 1, 1, 1], placement: popular, inference: true}}
schedulers: [ecmp]
measure: {iterations: 6, warmup: 1, time_limit: 60s}
scale: {bandwidth: 2500, time: 1}
"""


@pytest.fixture(scope="module")
def inference(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_text(SCENARIO, tmp_path_factory.mktemp("experts"))


def test_gpus_in_proportion_to_popularity_save_time_and_nobody_takes_longer_than_the_analysis(
    inference: Finished,
) -> None:
    inference.skip_if_disturbed()
    (experiment,) = prepare(str(inference.directory / "scenario.yaml"), engine="flow").experiments
    expected = {job.name: isolated(job, experiment.fabric).iteration_s for job in experiment.jobs}
    found = {name: inference.job("ecmp", name)["iteration_s"]["mean"] for name in expected}
    assert expected["even"] > 1.7 * expected["popular"]
    assert found["popular"] == pytest.approx(expected["popular"], rel=0.05)
    # Hosts meet at no barrier: whoever has its tokens back sends again while the busiest one still answers others.
    assert 1.4 * found["popular"] < found["even"] < 1.05 * expected["even"]
