"""A run finds out what the machine carries, with its own messages; all its schedulers have the scale that follows."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from emulation_runs import OURS, Finished, run_to_end

pytestmark = [pytest.mark.emulation, pytest.mark.whole_machine]

SCENARIO = """
name: rehearsed
fabric: {kind: clos, hosts: 4, gpus_per_host: 4, nics_per_host: 2, tors: 2, aggregations: 2,
         port_rate: 100Gbps, fabric_rate: 100Gbps}
jobs:
  - {name: big, model: bert, placement: [h0, h2], compute: 0.4s, communication: 5000MB, iterations: 1000}
  - {name: small, model: bert, placement: [h1, h3], compute: 0.2s, communication: 2000MB, iterations: 1000}
channels: 1
schedulers: [ecmp, crux]
measure: {iterations: 4, warmup: 1, time_limit: 120s}
"""


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    folder = tmp_path_factory.mktemp("rehearsed")
    (folder / "rehearsed.yaml").write_text(SCENARIO)
    return run_to_end(folder / "rehearsed.yaml", folder / "runs", "--allow-degraded")


def test_both_schedulers_have_the_scale_that_one_rehearsal_chose(rehearsed: Finished) -> None:
    evidence = [rehearsed.environment(scheduler) for scheduler in ("ecmp", "crux")]
    assert evidence[0]["scale"] == evidence[1]["scale"] == rehearsed.summary["scale"]
    assert evidence[0]["rehearsal"] == evidence[1]["rehearsal"] == rehearsed.summary["rehearsal"]
    manifest = json.loads((rehearsed.directory / "manifest.json").read_text())
    assert manifest["scale"] == rehearsed.summary["scale"]
    assert manifest["rehearsal"] == rehearsed.summary["rehearsal"]


def test_every_step_of_the_rehearsal_sent_messages_and_took_cpu_for_them(rehearsed: Finished) -> None:
    idle, *steps = rehearsed.summary["rehearsal"]["steps"]
    assert idle["packet_hops_per_s"] == 0.0
    assert steps and all(step["packet_hops_per_s"] > 0 for step in steps)
    assert all(step["busy"] > idle["busy"] for step in steps)


def test_rates_rise_while_more_cpu_is_allowed_and_fall_once_it_is_too_much(rehearsed: Finished) -> None:
    evidence = rehearsed.summary["rehearsal"]
    for earlier, later in pairwise(evidence["steps"][1:]):
        more = earlier["busy"] < evidence["allowed_busy"]
        assert later["bandwidth"] != earlier["bandwidth"] or later["mtu"] != earlier["mtu"]
        assert (later["bandwidth"] <= earlier["bandwidth"] and later["mtu"] <= earlier["mtu"]) == more


def test_what_the_rehearsal_did_is_no_part_of_the_run(rehearsed: Finished) -> None:
    for scheduler in ("ecmp", "crux"):
        kinds = {finding["kind"] for finding in rehearsed.run(scheduler)["fidelity"]["findings"]}
        assert not kinds & set(OURS)
        assert rehearsed.run(scheduler)["fidelity"]["retransmits"] == 0
        rows = rehearsed.rows(scheduler, "iterations.csv")
        assert min(int(row["iteration"]) for row in rows) == 0
        assert all(float(row["start_s"]) >= 0 for row in rows)


def test_the_scale_of_a_finished_run_is_taken_again_without_a_rehearsal(rehearsed: Finished, tmp_path: Path) -> None:
    scenario = rehearsed.directory.parent.parent / "rehearsed.yaml"
    again = run_to_end(
        scenario, tmp_path, "--allow-degraded", "--scheduler", "crux", "--scale-of", str(rehearsed.directory)
    )
    assert again.summary["scale"] == rehearsed.summary["scale"]
    assert again.summary["rehearsal"] is None
