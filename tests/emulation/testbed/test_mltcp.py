"""MLTCP with packets: windows that grow with what a flow has sent make two jobs take turns on the link they share."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulation_runs import run_text

pytestmark = pytest.mark.emulation

ALONE_S = 0.5 + 0.4
SCENARIO = """
fabric: {kind: clos, hosts: 4, gpus_per_host: 1, nics_per_host: 1, tors: 2, aggregations: 1,
         port_rate: 100Gbps, fabric_rate: 100Gbps}
jobs:
- {name: first, placement: [h0, h2], model: bert, collective: point-to-point, compute: 0.5s, overlap: 0,
   communication: 5GB}
- {name: second, placement: [h1, h3], start: 0.02s, model: bert, collective: point-to-point, compute: 0.5s, overlap: 0,
   communication: 5GB}
channels: 1
schedulers: [mltcp]
measure: {iterations: 6, warmup: 5}
"""


def test_two_jobs_that_start_together_end_up_nearly_as_fast_as_alone(tmp_path: Path) -> None:
    done = run_text(SCENARIO, tmp_path)
    done.skip_if_disturbed()
    # Sharing evenly they would need 1.3 s each once both begin together, 1.165 s as they begin here.
    for name in ("first", "second"):
        assert done.job("mltcp", name)["iteration_s"]["p50"] < 1.06 * ALONE_S
