"""A pipeline with real packets: stages wait for what is sent to them, and an iteration is as long as simulated."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulation_runs import beside_simulation

pytestmark = pytest.mark.emulation

SCENARIO = """
fabric: {kind: rail-optimized, hosts: 4, segments: 2, gpus_per_host: 8, nics_per_host: 1, aggregations: 1,
         port_rate: 100Gbps, fabric_rate: 100Gbps}
channels: 1
jobs:
- {name: dense, model: llama3-8b, placement: [h0, h2], parallel: {tensor: 8, pipeline: 2}, microbatches: 4,
   microbatch: 2}
- {name: tune, model: llama3-8b, placement: [h1, h3], sharding: zero-3, microbatches: 1, microbatch: 2}
schedulers: [ecmp]
measure: {iterations: 3, warmup: 1, time_limit: 60s}
scale: {bandwidth: 2500, time: 4}
"""


def test_iterations_of_laid_out_jobs_are_those_simulated(tmp_path: Path) -> None:
    done, simulated, reasons = beside_simulation(SCENARIO, tmp_path)
    for job in simulated.values():
        measured = done.job("ecmp", job["name"])["iteration_s"]["p50"]
        assert measured >= 0.97 * job["iteration_s"]["p50"], job["name"]
        if not reasons:
            assert measured <= 1.03 * job["iteration_s"]["p50"], job["name"]
