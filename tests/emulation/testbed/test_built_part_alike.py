"""What no connection can use makes no difference: decisions and iterations are those of the whole fabric."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulation_runs import Finished, run_to_end

pytestmark = pytest.mark.emulation

SCENARIO = """
name: built
fabric: {kind: clos3, hosts: 8, gpus_per_host: 2, nics_per_host: 1, pods: 4, tors_per_pod: 2, aggregations_per_pod: 2,
         cores: 2, port_rate: 100Gbps, fabric_rate: 100Gbps}
jobs:
  - {name: big, model: bert, placement: [h0, h2], compute: 0.4s, communication: 4000MB, iterations: 1000}
  - {name: small, model: bert, placement: [h1, h3], compute: 0.2s, communication: 2000MB, iterations: 1000}
channels: 1
schedulers: [crux]
measure: {iterations: 6, warmup: 1, time_limit: 120s}
scale: {bandwidth: 8000, time: 1}
"""


def test_used_and_all_decide_and_take_the_same(tmp_path: Path) -> None:
    scenario = tmp_path / "built.yaml"
    scenario.write_text(SCENARIO)
    used, whole = (
        run_to_end(scenario, tmp_path / build, "--allow-degraded", "--set", f"build={build}")
        for build in ("used", "all")
    )
    assert decided(used) == decided(whole)
    links = [{row["link"] for row in run.rows("crux", "links.csv")} for run in (used, whole)]
    assert links[0] == links[1]
    used.skip_if_disturbed()
    whole.skip_if_disturbed()
    for job in ("big", "small"):
        assert iteration_s(used, job) == pytest.approx(iteration_s(whole, job), rel=0.02)


def decided(run: Finished) -> list[tuple[str, object, object]]:
    """Cause, paths and levels of each decision at an arrival; later ones follow what was measured."""
    rows = [row for row in run.decisions("crux") if row["cause"].startswith("arrival")]
    return [(row["cause"], row["paths"], row["levels"]) for row in rows]


def iteration_s(run: Finished, job: str) -> float:
    return float(run.job("crux", job)["iteration_s"]["mean"])
