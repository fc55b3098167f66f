"""``testbed plan`` as its user meets it, and the numbers behind it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controller.decision import ClusterView, Decision, Event, Scheduler
from controller.ecmp_hash import ecmp_path
from testbed.api import prepare
from testbed.bundled_scenarios import COMPUTED
from testbed.cli.main import main
from testbed.dry_run import SET_UP_S, collisions, final_decision, plan
from testbed.experiment.contention import HIDDEN
from testbed.scenario import bundled


def document_of(scenario: str, *options: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["plan", scenario, "--json", *options]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def shown(scenario: str, *options: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["plan", scenario, *options]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", bundled())
def test_every_bundled_scenario_can_be_planned_within_the_estimate(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--engine", "flow") if name in COMPUTED else ()
    document = document_of(name, *options, capsys=capsys)
    assert options or document["scale"]["estimated_load_share"] <= 1.0
    labels = {
        "lina.yaml": ["ecmp", "lina"],
        "clos96-2to1.yaml": ["ecmp", "crux-pa", "no-priorities", "crux"],
        "multi-tenant.yaml": ["ecmp", "cassini", "crux"],
        "philly-servers.yaml": ["ecmp", "crux-fair"],
        "llm.yaml": ["ecmp", "crux", "cassini", "spray"],
        "llm1024.yaml": ["ecmp", "crux", "cassini", "spray"],
        "spray.yaml": ["ecmp", "spray", "crux", "crux-spray"],
    }
    assert [entry["scheduler"] for entry in document["schedulers"]] == labels.get(name, ["ecmp", "crux"])


def test_clos96_is_the_fabric_and_the_mix_of_the_paper(capsys: pytest.CaptureFixture[str]) -> None:
    document = document_of("clos96.yaml", capsys=capsys)
    assert document["fabric"] == {
        "name": "clos",
        "hosts": 12,
        "gpus": 96,
        "nics": 48,
        "ports": 48,
        "switches": {"tor": 6, "agg": 8, "core": 0},
        "cables": {"host-tor": 48, "tor-agg": 48},
    }
    assert [job["gpus"] for job in document["jobs"]] == [48, 16, 16, 8, 8]


def test_crux_gives_no_link_of_clos96_more_flows_than_a_nic_opens_and_ecmp_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ecmp, crux = document_of("clos96.yaml", capsys=capsys)["schedulers"]
    assert crux["links_by_flows"] == {"4": 96} and crux["worst_link"]["flows"] == 4
    assert ecmp["worst_link"]["flows"] > 4 and len(ecmp["worst_link"]["jobs"]) >= 1
    alone = {job["name"]: job["iteration_s"] for job in crux["jobs"]}
    assert all(job["iteration_s"] >= alone[job["name"]] for job in ecmp["jobs"])


def test_with_one_connection_per_pair_of_ports_crux_gives_no_flow_of_clos96_a_neighbour(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ecmp, crux = document_of("clos96.yaml", "--set", "channels=1", capsys=capsys)["schedulers"]
    assert crux["links_by_flows"] == {} and crux["worst_link"] is None
    assert ecmp["links_by_flows"]


def test_the_decision_is_a_function_of_scenario_and_seed() -> None:
    first, again, other = (prepare("clos96", schedulers=["ecmp"], seed=seed).experiments[0] for seed in (4, 4, 5))
    assert final_decision(first) == final_decision(again)
    assert final_decision(first).paths != final_decision(other).paths


def test_planned_paths_are_those_of_the_hash() -> None:
    experiment = prepare("hello", schedulers=["ecmp"]).experiments[0]
    decision = final_decision(experiment)
    flows = [flow for job in experiment.jobs for flow in job.flows]
    assert decision.paths == {flow.id: ecmp_path(experiment.fabric, flow, experiment.seed) for flow in flows}


def test_collisions_count_flows_above_the_tors_only() -> None:
    experiment = prepare("hello", schedulers=["ecmp"]).experiments[0]
    flows = [flow for job in experiment.jobs for flow in job.flows]
    same = {flow.id: experiment.fabric.candidate_paths(flow.source, flow.target)[0] for flow in flows}
    found = collisions(experiment.fabric, experiment.jobs, same)
    assert found.links_by_flows == {2: 4}
    assert (found.worst_flows, found.worst_jobs) == (2, ("big", "small"))
    assert collisions(experiment.fabric, experiment.jobs, {}).links_by_flows == {}


def test_the_estimate_grows_with_iterations_dilation_and_late_arrival() -> None:
    def estimated(*overrides: str) -> float:
        found = plan(
            prepare("hello", schedulers=["crux"], overrides=["measure.time_limit=100s", *overrides]).experiments
        )
        return float(found["estimated_s"]) - SET_UP_S

    assert estimated() == pytest.approx(5 * 0.44)
    assert estimated("measure.iterations=9") == pytest.approx(10 * 0.44)
    assert estimated("scale={bandwidth: 8000, time: 3}") == pytest.approx(3 * 5 * 0.44)
    assert estimated("jobs.small.start=10s") == pytest.approx(10 + 5 * 0.38)
    assert estimated("jobs.big.iterations=1", "jobs.small.iterations=2") == pytest.approx(2 * 0.38)


def test_a_run_is_never_estimated_beyond_its_limit() -> None:
    found = plan(prepare("hello", schedulers=["crux"], overrides=["measure.iterations=5000"]).experiments)
    assert found["estimated_s"] == 8 + SET_UP_S


def test_the_tables_name_every_job_scheduler_and_the_scale(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown("clos96.yaml", capsys=capsys)
    for word in ("gpt", "bert-0", "resnet-1", "ecmp", "crux", "12 hosts, 96 GPUs, 48 NICs", "6.061Mbps", "estimated"):
        assert word in text
    assert "warning" not in text


def test_columns_line_up(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown("clos96.yaml", capsys=capsys).splitlines()
    rows = [line for line in lines if line.lstrip().startswith(("gpt ", "bert-", "resnet-"))][:5]
    assert len({line.rstrip().rindex("FLOP/s") for line in rows}) == 1


def test_a_given_scale_above_the_estimate_is_one_line_of_warning(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown("hello", "--set", "scale={bandwidth: 800}", capsys=capsys)
    assert [line for line in text.splitlines() if "warning" in line] == [
        "warning: with all ports sending at once the load is 1.7 times what two cores are estimated to carry, the "
        "verdict may not be ok (scale: auto measures that)",
    ]
    assert "scale (as given): rates / 800, times x 1, MTU 9000" in text


def test_a_scale_that_a_run_would_measure_is_said_to_be_an_estimate(capsys: pytest.CaptureFixture[str]) -> None:
    assert "scale (an estimate, the run measures this machine first and decides): rates /" in shown(
        "clos96", capsys=capsys
    )


def test_options_replace_schedulers_and_seed(capsys: pytest.CaptureFixture[str]) -> None:
    document = document_of("hello", "--scheduler", "ecmp-switch", "--seed", "7", capsys=capsys)
    assert document["seed"] == 7
    assert [(entry["scheduler"], entry["hashed_flows"]) for entry in document["schedulers"]] == [("ecmp-switch", 4)]
    assert "the switches choose the paths of 4 flows" in shown("hello", "--scheduler", "ecmp-switch", capsys=capsys)


def test_a_wrong_scenario_is_refused_like_by_validate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("fabric: {kind: clos}\n", encoding="utf-8")
    assert main(["plan", str(path)]) == 2
    planned = capsys.readouterr().err
    assert main(["validate", str(path)]) == 2
    assert capsys.readouterr().err == planned


class _Raises(Scheduler):
    name = "raises"
    summary = "raises"

    def decide(self, view: ClusterView, event: Event) -> Decision:
        raise ZeroDivisionError("no\nflows")


def test_a_scheduler_that_raises_is_one_line_and_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("controller.schedulers.registry.create", lambda *_: _Raises())
    assert main(["plan", "hello"]) == 1
    assert capsys.readouterr() == ("", "scheduler raises raised ZeroDivisionError: no flows\n")


def test_a_plan_says_when_there_is_nothing_to_schedule(capsys: pytest.CaptureFixture[str]) -> None:
    less = ("jobs.big.communication=1MB", "jobs.small.communication=1MB", "jobs.small.overlap=0.5")
    options = [word for change in less for word in ("--set", change)]
    for engine in ("emulation", "flow"):
        assert f"\n{HIDDEN}\n" in shown("hello.yaml", "--engine", engine, *options, capsys=capsys)
    assert "nothing to schedule" not in shown("hello.yaml", capsys=capsys)


def test_a_plan_says_what_of_the_fabric_is_not_built(capsys: pytest.CaptureFixture[str]) -> None:
    larger = ("--set", "fabric.hosts=8")
    words = "not built, since no job can use them: "
    assert f"\n{words}" in shown("hello.yaml", *larger, capsys=capsys)
    for everything in (("--set", "build=all"), ("--engine", "flow")):
        assert words not in shown("hello.yaml", *larger, *everything, capsys=capsys)
    assert words not in shown("clos96.yaml", capsys=capsys)


def test_a_plan_says_that_switches_spread_packets(capsys: pytest.CaptureFixture[str]) -> None:
    document = document_of("spray.yaml", capsys=capsys)
    by_label = {entry["scheduler"]: entry for entry in document["schedulers"]}
    assert by_label["ecmp"]["hashed_flows"] == 0 and by_label["ecmp"]["links_by_flows"]
    assert by_label["spray"]["hashed_flows"] > 0 and not by_label["spray"]["links_by_flows"]
