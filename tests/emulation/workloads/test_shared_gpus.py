"""Two jobs on the same GPUs, on packets: one computes while the other sends, as Muri interleaves them."""

from __future__ import annotations

import pytest
from emulation_runs import Finished, run_text

pytestmark = pytest.mark.emulation

SCENARIO = """
fabric: {kind: clos, hosts: 2, gpus_per_host: 1, nics_per_host: 1, tors: 1, aggregations: 1,
         port_rate: 100Gbps, fabric_rate: 100Gbps}
jobs:
  - {name: computes, model: bert, placement: [h0, h1], compute: 0.8s, communication: 5GB, overlap: 0}
  - {name: sends, model: bert, share_gpus_with: computes, compute: 0.4s, communication: 10GB, overlap: 0}
schedulers: [ecmp]
measure: {iterations: 8, warmup: 3, time_limit: 60s}
scale: {bandwidth: 2500, time: 1}
"""
TOGETHER_S = 0.8 + 0.4
"""An iteration of both: each computes while the other sends, 0.8 s of 0.8 s and 0.4 s of 0.4 s."""


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_text(SCENARIO, tmp_path_factory.mktemp("packed"))


@pytest.mark.parametrize("job", ["computes", "sends"])
def test_complements_make_an_iteration_of_both_in_the_time_of_one(packed: Finished, job: str) -> None:
    packed.skip_if_disturbed()
    assert packed.job("ecmp", job)["iteration_s"]["mean"] == pytest.approx(TOGETHER_S, rel=0.03)


def test_the_gpus_that_they_share_are_hardly_ever_idle(packed: Finished) -> None:
    packed.skip_if_disturbed()
    assert sum(entry["gpu_utilization"] for entry in packed.run("ecmp")["jobs"]) > 0.96
