"""The simulation of packets and the emulation, which sends them, say the same: two rings that share a cable."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulation_runs import run_text

from testbed.api import run_scenario

pytestmark = pytest.mark.emulation

SCHEDULERS = ("ecmp", "mltcp", "pfabric")
SCENARIO = f"""
fabric: {{kind: clos, hosts: 6, gpus_per_host: 1, nics_per_host: 1, tors: 2, aggregations: 1,
         port_rate: 100Gbps, fabric_rate: 100Gbps}}
jobs:
- {{name: large, placement: [h0, h3, h1, h4], model: bert, collective: ring, compute: 0.2s, overlap: 0,
   communication: 4GB}}
- {{name: small, placement: [h2, h5], model: bert, collective: ring, compute: 0.15s, overlap: 0, communication: 1.5GB}}
schedulers: [{", ".join(SCHEDULERS)}]
measure: {{iterations: 6, warmup: 3}}
scale: {{bandwidth: 2500, time: 1}}
"""


def test_shares_of_a_cable_are_those_of_simulated_packets(tmp_path: Path) -> None:
    done = run_text(SCENARIO, tmp_path)
    done.skip_if_disturbed()
    path = tmp_path / "simulated.yaml"
    path.write_text(SCENARIO, "utf-8")
    simulated = run_scenario(path, engine="simulation", out=tmp_path / "simulation").summary
    for run in simulated["runs"]:
        assert done.run(run["scheduler"])["gpu_utilization"] == pytest.approx(run["gpu_utilization"], abs=0.02)
        for job in run["jobs"]:
            measured = done.job(run["scheduler"], job["name"])["iteration_s"]["mean"]
            assert measured == pytest.approx(job["iteration_s"]["mean"], rel=0.04), (run["scheduler"], job["name"])
