"""The section ``network`` of a scenario: what is not said has its default, alone or beside what is."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.api import prepare
from testbed.errors import BadInputError
from testbed.experiment.experiment import Experiment
from testbed.experiment.network_model import Buffers, Delays, Ecn, NetworkModel
from testbed.scenario import load
from topologies.network.congestion import Congestion

SCENARIO = """
fabric: {{kind: clos, hosts: 2, gpus_per_host: 1, nics_per_host: 1, tors: 1, aggregations: 1, port_rate: 100Gbps,
         fabric_rate: 100Gbps}}
jobs: [{{name: a, model: bert, gpus: 2}}]
schedulers: [ecmp]
network: {network}
"""


def network(tmp_path: Path, text: str) -> NetworkModel:
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO.format(network=text), "utf-8")
    return load(str(path), models=["bert"], schedulers=["ecmp"]).network.value()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{ecn: {minimum: 100KB}}", Ecn(minimum=100e3)),
        ("{ecn: {maximum: 500KB}}", Ecn(maximum=500e3)),
        ("{ecn: {probability: 0.5}}", Ecn(probability=0.5)),
        ("{ecn: {rate: 400Gbps}}", Ecn(rate=400e9)),
        ("{buffers: {size: 64MB}}", Buffers(size=64e6)),
        ("{buffers: {per: port}}", Buffers(per="port")),
        ("{buffers: {xoff: 1MB}}", Buffers(xoff=1e6)),
        ("{buffers: {xoff: 1MB, xon: 500KB}}", Buffers(xoff=1e6, xon=500e3)),
        ("{buffers: {headroom: 100KB}}", Buffers(headroom=100e3)),
        ("{buffers: {when_full: go-back-n, timeout: 2ms}}", Buffers(when_full="go-back-n", timeout_s=2e-3)),
        ("{delays: {switch: 1us}}", Delays(switch=1e-6)),
    ],
)
def test_one_value_leaves_the_others_as_they_are(tmp_path: Path, text: str, expected: Ecn | Buffers | Delays) -> None:
    found = network(tmp_path, text)
    assert expected in (found.ecn, found.buffers, found.delays)


def test_every_transport_has_its_parameters_and_one_can_be_changed(tmp_path: Path) -> None:
    found = network(tmp_path, "{transport: hpcc, parameters: {utilization: 0.9}, mtu: 1024}")
    assert (found.transport, found.mtu, found.parameters["utilization"]) == ("hpcc", 1024, 0.9)
    assert found.parameters["stages"] == 5.0


def prepared(tmp_path: Path, text: str, engine: str) -> Experiment:
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO.format(network=text), "utf-8")
    (found,) = prepare(str(path), engine=engine, overrides=["scale={bandwidth: 4000, time: 1}"]).experiments
    return found


@pytest.mark.parametrize(
    ("text", "engine", "line"),
    [
        ("{transport: dcqcn}", "emulation", "dcqcn, which only a simulation has: expected --engine simulation"),
        ("{transport: reno}", "simulation", "reno, which only an emulation has: expected --engine emulation"),
        ("{transport: mltcp}", "simulation", "mltcp, which only an emulation has: expected --engine emulation"),
        (
            "{load_balancing: adaptive}",
            "emulation",
            "an emulation has no load balancing adaptive, expected one",
        ),
        ("{load_balancing: flowlet}", "simulation", "with transport window has no load balancing flowlet"),
    ],
)
def test_an_engine_refuses_in_one_line_what_it_does_not_have(tmp_path: Path, text: str, engine: str, line: str) -> None:
    with pytest.raises(BadInputError, match=line) as refused:
        prepared(tmp_path, text, engine)
    assert str(refused.value).count("\n") == 0 and "scenario.yaml:6" in str(refused.value)


def test_an_emulation_takes_the_kernels_congestion_control_and_thresholds_in_packets(tmp_path: Path) -> None:
    found = prepared(tmp_path, "{transport: dctcp, ecn: {packets: 7}, buffers: {packets: 50}}", "emulation")
    assert found.congestion == Congestion("dctcp", 7, 50)
    assert found.loses_packets_by_design
    assert prepared(tmp_path, "{transport: reno}", "emulation").congestion == Congestion("reno")
    assert prepared(tmp_path, "{}", "emulation").congestion is None


def test_mltcp_takes_half_the_shortest_pause_for_the_end_of_an_iteration(tmp_path: Path) -> None:
    found = prepared(tmp_path, "{transport: mltcp}", "emulation")
    (job,) = found.jobs
    pause_s = sum(phase.compute_s * (1 - phase.overlap) for phase in job.phases)
    assert found.congestion is not None and found.congestion.gap_s == pytest.approx(pause_s / 2)


def test_a_program_of_ones_own_that_others_can_change_is_refused(tmp_path: Path) -> None:
    own = tmp_path / "own.o"
    own.write_bytes(b"")
    own.chmod(0o666)
    with pytest.raises(BadInputError, match=r"own\.o can be changed by others than root"):
        prepared(tmp_path, "{transport: {bpf: own.o}}", "emulation")
    with pytest.raises(BadInputError, match=r"none\.o: No such file or directory"):
        prepared(tmp_path, "{transport: {bpf: none.o}}", "emulation")


def test_a_scheduler_may_have_a_load_balancing_of_its_own_for_its_run(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO.format(network="{}"), "utf-8")
    schedulers = "schedulers=[ecmp, {name: ecmp, label: sprayed, load_balancing: spray}]"
    for engine in ("flow", "emulation"):
        plain, sprayed = prepare(
            str(path), engine=engine, overrides=[schedulers, "scale={bandwidth: 4000, time: 1}"]
        ).experiments
        assert (plain.load_balancing, plain.spreads) == ("hash", False)
        assert (sprayed.load_balancing, sprayed.spreads) == ("spray", True)
    assert sprayed.datapath == "nftables"
    assert sprayed.scheduler.described == "sprayed (ecmp, load_balancing: spray)"
