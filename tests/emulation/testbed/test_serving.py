"""A serving job with real packets beside training: caches take as long as in the simulation of the same packets."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulation_runs import beside_simulation

pytestmark = pytest.mark.emulation

SCENARIO = """
fabric: {kind: clos, hosts: 4, gpus_per_host: 4, nics_per_host: 1, tors: 2, aggregations: 1,
         port_rate: 100Gbps, fabric_rate: 100Gbps}
channels: 1
jobs:
- {name: chat, kind: serving, model: llama3-70b, precision: fp8, placement: [h0, h2], prefill: {tensor: 4},
   decode: {tensor: 4}, requests: {rate: 0.8, prompt: 8192, output: 200, count: 60}}
- {name: train, model: bert, placement: [h1, h3], compute: 0.5s, communication: 4GB}
schedulers: [ecmp]
measure: {iterations: 12, warmup: 2, time_limit: 90s}
scale: {bandwidth: 2500, time: 2}
"""


def test_requests_take_as_long_as_simulated(tmp_path: Path) -> None:
    done, simulated, reasons = beside_simulation(SCENARIO, tmp_path)
    measured = done.job("ecmp", "chat")["serving"]
    expected = simulated["chat"]["serving"]
    assert measured["requests"] >= 10
    assert measured["cache_s"]["p50"] >= 0.95 * expected["cache_s"]["p50"]
    if not reasons:
        assert measured["cache_s"]["p50"] <= 1.1 * expected["cache_s"]["p50"]
        assert measured["first_token_s"]["p50"] == pytest.approx(expected["first_token_s"]["p50"], rel=0.03)
        assert measured["between_tokens_s"]["p50"] == pytest.approx(expected["between_tokens_s"]["p50"], rel=0.03)
