"""Jobs that arrive and leave while others run: paths and levels of running flows change in mid-message."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from emulation_runs import Finished, default_and_userspace, run_text

from controller.ecmp_hash import ecmp_path
from testbed.api import prepare

pytestmark = pytest.mark.emulation

SCENARIO = """
fabric: {kind: clos, hosts: 4, gpus_per_host: 4, nics_per_host: 2, tors: 2, aggregations: 2,
         port_rate: 100Gbps, fabric_rate: 100Gbps}
jobs:
  - {name: long, model: bert, placement: ["h0:0-1", "h2:0-1"], compute: 0.3s, communication: 4GB, overlap: 0}
  - {name: short, model: resnet, placement: ["h0:2-3", "h2:2-3"], compute: 0.3s, communication: 3GB, overlap: 0,
     iterations: 8}
  - {name: later, model: resnet, placement: ["h1:0-1", "h3:0-1"], compute: 0.2s, communication: 3GB, overlap: 0,
     start: 1.5s}
  - {name: latest, model: resnet, placement: ["h1:2-3", "h3:2-3"], compute: 0.9s, communication: 4GB, overlap: 0,
     start: 2.5s}
channels: 1
schedulers: [crux]
measure: {iterations: 5, warmup: 1, time_limit: 30s}
scale: {bandwidth: 8000, time: 1}
"""


@pytest.fixture(scope="module", params=default_and_userspace())
def changing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_text(SCENARIO, tmp_path_factory.mktemp("changing"), "--datapath", request.param)


def test_every_arrival_and_departure_has_its_decision(changing: Finished) -> None:
    assert [row["cause"] for row in changing.decisions("crux")] == [
        "arrival of long",
        "arrival of short",
        "arrival of later",
        "arrival of latest",
        "departure of short",
    ]


def test_flows_of_running_jobs_changed_path_and_level(changing: Finished) -> None:
    rows = changing.decisions("crux")
    moved = [flow for before, after in pairwise(rows) for flow in _moved(before, after)]
    raised = [
        job
        for before, after in pairwise(rows)
        for job, level in after["levels"].items()
        if before["levels"].get(job, 7) != level and job not in after["cause"]
    ]
    assert moved, "the scenario no longer makes Crux move a running flow"
    assert raised, "the scenario no longer makes Crux change the level of a running job"


def _moved(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    return [flow for flow, path in before["paths"].items() if after["paths"].get(flow, path) != path]


def test_no_packet_of_theirs_was_lost_and_only_those_in_flight_were_overtaken(changing: Finished) -> None:
    fidelity = changing.run("crux")["fidelity"]
    assert fidelity["retransmits"] == 0
    assert fidelity["unintended_drops"] == 0
    assert not any("out of order" in reason for reason in fidelity["reasons"])


def test_the_job_that_ended_has_a_measured_completion_time_and_the_others_a_projected_one(changing: Finished) -> None:
    assert changing.job("crux", "short")["jct_source"] == "measured"
    assert changing.job("crux", "long")["jct_source"] == "projected"


def test_rules_were_confirmed_on_all_switches_at_every_change(changing: Finished) -> None:
    assert all(row["confirmed_s"] > 0 for row in changing.decisions("crux"))


def test_a_new_mark_is_on_what_a_sender_sends_within_300_ms(changing: Finished) -> None:
    seconds = changing.environment("crux")["old_marks_s"]
    assert seconds, "no flow sent after its mark had changed"
    assert max(seconds) <= 0.3


@pytest.fixture(scope="module")
def ported(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """The same, paths enforced the paper's way: by source ports that hash to them."""
    text = SCENARIO.replace("schedulers: [crux]", "schedulers: [{name: crux, enforcement: ports}]")
    return run_text(text, tmp_path_factory.mktemp("ported"))


def test_a_flow_that_moves_opens_anew_from_a_port_that_hashes_to_its_path(ported: Finished) -> None:
    prepared = prepare(str(ported.directory / "scenario.yaml"))
    flows = {flow.id: flow for job in prepared.jobs for flow in job.flows}
    rows = ported.decisions("crux")
    for row in rows:
        for name, port in row["ports"].items():
            hashed = ecmp_path(prepared.fabric, replace(flows[name], source_port=port), prepared.scenario.seed)
            assert list(hashed) == row["paths"][name]
    assert any(_moved(before, after) for before, after in pairwise(rows))


def test_packets_with_probed_ports_take_the_decided_paths_and_none_is_lost(ported: Finished) -> None:
    fidelity = ported.run("crux")["fidelity"]
    assert {each["kind"] for each in fidelity["findings"]}.isdisjoint({"mark", "path"}), fidelity["reasons"]
    assert (fidelity["retransmits"], fidelity["unintended_drops"]) == (0, 0)
    assert ported.environment("crux")["sampled_packets"] > 100
