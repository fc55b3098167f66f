"""Jobs that end at the same moment leave one after the other, and the rest goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulation_runs import run_text

pytestmark = pytest.mark.emulation

TWINS = ("one", "two")
# They share a cable, so each has a level of its own; but they hardly send: they end within a few milliseconds.
SCENARIO = """
fabric: {kind: clos, hosts: 6, gpus_per_host: 1, nics_per_host: 1, tors: 2, aggregations: 1,
         port_rate: 100Gbps, fabric_rate: 100Gbps}
jobs:
- {name: one, placement: [h0, h3], model: bert, collective: ring, compute: 0.3s, communication: 0.1GB, iterations: 6}
- {name: two, placement: [h1, h4], model: bert, collective: ring, compute: 0.3s, communication: 0.1GB, iterations: 6}
- {name: long, placement: [h2, h5], model: bert, collective: ring, compute: 0.3s, communication: 0.1GB}
schedulers: [crux-pa]
measure: {iterations: 12, warmup: 2}
scale: {bandwidth: 2500, time: 1}
"""


def test_jobs_that_end_together_leave_and_the_last_one_is_measured(tmp_path: Path) -> None:
    done = run_text(SCENARIO, tmp_path)
    assert done.summary, done.error
    causes = [row["cause"] for row in done.decisions("crux-pa")]
    assert sorted(cause for cause in causes if cause.startswith("departure")) == sorted(
        f"departure of {name}" for name in TWINS
    )
    done.skip_if_disturbed()
    assert done.job("crux-pa", "long")["iterations"] >= 12
