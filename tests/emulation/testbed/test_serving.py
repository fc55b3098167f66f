"""A serving job with real packets beside training: caches take as long as in the simulation of the same packets."""

from __future__ import annotations

import csv
from pathlib import Path
from statistics import median

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
    """Request by request: which of them count depends on how many iterations the machine disturbed."""
    done, simulated, reasons = beside_simulation(SCENARIO, tmp_path)
    serving = done.job("ecmp", "chat")["serving"]
    measured, expected = (requests(folder) for folder in (done.directory, tmp_path / "simulated"))
    common = sorted(measured.keys() & expected.keys())
    assert len(common) >= 10
    cache, first_token = (
        median(measured[number][column] / expected[number][column] for number in common) for column in range(2)
    )
    assert cache >= 0.95
    if not reasons:
        assert cache <= 1.1
        assert first_token == pytest.approx(1, rel=0.03)
        between_tokens = simulated["chat"]["serving"]["between_tokens_s"]["p50"]
        assert serving["between_tokens_s"]["p50"] == pytest.approx(between_tokens, rel=0.03)


def requests(folder: Path) -> dict[str, tuple[float, float]]:
    """Request of the run in ``folder`` -> seconds its cache was sent for, and its time to first token."""
    (path,) = folder.rglob("ecmp/requests.csv")
    with path.open() as file:
        return {
            row["request"]: (
                float(row["cache_s"]) - float(row["first_token_s"]),
                float(row["first_token_s"]) - float(row["arrival_s"]),
            )
            for row in csv.DictReader(file)
        }
