"""A fabric whose hosts cannot reach each other is found, and rails and planes that need not are left alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from topologies.clos import clos
from topologies.fabric import Fabric
from topologies.formats.errors import FabricFileError
from topologies.formats.node_link import read as read_node_link
from topologies.formats.simai import read as read_simai
from topologies.generators.hpn import hpn
from topologies.generators.rail_optimized import rail_optimized
from topologies.reachability import flow_apart, ports_apart

CLOS = clos(hosts=4, gpus_per_host=2, nics_per_host=2, tors=2, aggregations=1, port_rate=1e11, fabric_rate=1e11)
APART = replace(
    CLOS, links={name: link for name, link in CLOS.links.items() if "agg0" not in (link.source, link.target)}
)
SIMAI = """\
6 1 2 2 4 H100
2 3 4 5
0 2 2880Gbps 0.000025ms 0
0 4 200Gbps 0.0005ms 0
1 3 2880Gbps 0.000025ms 0
1 5 200Gbps 0.0005ms 0
"""


def test_hosts_under_one_fabric_reach_each_other() -> None:
    assert ports_apart(CLOS) is None
    assert flow_apart([("h0n0p0", "h3n0p0")], CLOS) is None


def test_ports_that_no_cable_joins_are_found() -> None:
    assert ports_apart(APART) == ("h0n0p0", "h2n0p0")
    assert flow_apart([("h0n0p0", "h1n0p0"), ("h1n1p0", "h3n1p0")], APART) == ("h1n1p0", "h3n1p0")


@pytest.mark.parametrize(
    "fabric",
    [
        rail_optimized(hosts=4, segments=1, nics_per_host=4, aggregations=2),
        hpn(hosts=4, segments=2, aggregations=4),
    ],
    ids=["rails", "planes"],
)
def test_rails_and_planes_need_not_reach_each_other(fabric: Fabric) -> None:
    assert ports_apart(fabric) is None


def test_a_file_of_parts_names_two_switches(tmp_path: Path) -> None:
    nodes = [{"id": host, "kind": "host", "gpus": 2} for host in ("a", "b")]
    nodes += [{"id": switch, "kind": "switch"} for switch in ("left", "right")]
    edges = [{"source": one, "target": other, "rate": "1Gbps"} for one, other in (("a", "left"), ("b", "right"))]
    path = tmp_path / "parts.json"
    path.write_text(json.dumps({"directed": False, "multigraph": False, "graph": {}, "nodes": nodes, "edges": edges}))
    message = "hosts under switch left cannot reach those under switch right, expected a path between every two hosts"
    with pytest.raises(FabricFileError, match=message):
        read_node_link(path)


def test_a_topology_of_simai_in_parts_names_two_switches(tmp_path: Path) -> None:
    path = tmp_path / "parts"
    path.write_text(SIMAI)
    with pytest.raises(FabricFileError, match="hosts under switch 4 cannot reach those under switch 5"):
        read_simai(path)
