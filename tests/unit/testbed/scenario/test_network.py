"""The section ``network`` of a scenario: what is not said has its default, alone or beside what is."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.experiment.network_model import Buffers, Delays, Ecn, NetworkModel
from testbed.scenario import load

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
