"""Drawings have each host, each switch and each cable once."""

from __future__ import annotations

from collections import Counter

from topologies.clos import clos
from topologies.formats.drawings import containerlab, graphviz

FABRIC = clos(
    hosts=4,
    tors=2,
    aggregations=3,
    gpus_per_host=4,
    nics_per_host=2,
    port_rate=100e9,
    fabric_rate=100e9,
    parallel_links=2,
)


def test_graphviz_has_a_node_for_each_host_and_switch_and_a_line_for_each_pair() -> None:
    lines = [line.strip() for line in graphviz(FABRIC).splitlines()]
    assert sum(line.startswith(("h", "tor", "agg")) and " -- " not in line for line in lines) == 4 + 2 + 3
    assert 'tor0 -- agg2 [label="2 x 100Gbps"];' in lines
    assert sum(" -- " in line for line in lines) == 4 + 2 * 3


def test_containerlab_has_a_link_for_each_cable_and_uses_no_interface_twice() -> None:
    topology = containerlab(FABRIC)["topology"]
    assert set(topology["nodes"]) == {*FABRIC.hosts, *FABRIC.switches}
    ends = Counter(end for link in topology["links"] for end in link["endpoints"])
    assert len(topology["links"]) == len(FABRIC.network_links) // 2
    assert set(ends.values()) == {1}
