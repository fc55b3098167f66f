"""Node-link JSON of networkx: what is written reads back as the same fabric; what is wrong names its line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from topologies.clos import clos, clos3
from topologies.double_sided import double_sided
from topologies.fabric import Fabric
from topologies.formats.errors import FabricFileError
from topologies.formats.node_link import read, written
from topologies.generators.hpn import hpn

HOST: Mapping[str, Any] = {"gpus_per_host": 4, "nics_per_host": 2, "port_rate": 200e9, "fabric_rate": 100e9}
FABRICS = [
    clos(hosts=4, tors=2, aggregations=2, parallel_links=2, **HOST),
    clos3(pods=2, hosts=4, tors_per_pod=2, aggregations_per_pod=2, cores=4, **HOST),
    double_sided(hosts=6, tors=6, aggregations=3, cores=2),
    hpn(hosts=4, segments=2, planes=2, aggregations=4),
]


@pytest.mark.parametrize("fabric", FABRICS, ids=lambda fabric: fabric.name)
def test_a_fabric_that_is_written_reads_back_the_same(tmp_path: Path, fabric: Fabric) -> None:
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(written(fabric)), "utf-8")
    again = read(file)
    assert again.hosts == fabric.hosts
    assert again.nics == fabric.nics
    assert again.ports == fabric.ports
    assert again.links == fabric.links


def graph(**changes: Any) -> dict[str, Any]:
    """Two hosts of one GPU under a switch each, with one above."""
    nodes = [{"id": name, "kind": "host", "gpus": 1} for name in ("left", "right")]
    nodes += [{"id": name, "kind": "switch"} for name in ("a", "b", "top")]
    ends = [("left", "a"), ("b", "right"), ("top", "a"), ("b", "top")]
    edges = [{"source": source, "target": target, "rate": "100Gbps"} for source, target in ends]
    return {"directed": False, "multigraph": False, "graph": {}, "nodes": nodes, "edges": edges} | changes


def reading(tmp_path: Path, data: object) -> Fabric:
    file = tmp_path / "graph.json"
    file.write_text(json.dumps(data, indent=1), "utf-8")
    return read(file)


def test_switches_get_their_tier_from_their_distance(tmp_path: Path) -> None:
    fabric = reading(tmp_path, graph())
    assert list(fabric.switches) == ["tor0", "tor1", "agg0"]
    assert fabric.candidate_paths("h0n0p0", "h1n0p0") == (("h0n0p0->tor0", "tor0->agg0", "agg0->tor1", "tor1->h1n0p0"),)


def test_older_versions_of_networkx_call_edges_links(tmp_path: Path) -> None:
    data = graph()
    assert reading(tmp_path, data | {"links": data.pop("edges")}).links == reading(tmp_path, graph()).links


def test_edges_without_nic_are_dealt_in_order(tmp_path: Path) -> None:
    data = graph()
    data["nodes"][0] |= {"gpus": 4, "nics": 2}
    data["edges"] += [{"source": "left", "target": "b", "rate": 1e11}] * 3
    assert [port.switch for port in reading(tmp_path, data).ports.values()][:4] == ["tor0", "tor1", "tor1", "tor1"]
    assert reading(tmp_path, data).nics["h0n0"].ports == ("h0n0p0", "h0n0p1")


def changed(key: str, index: int, **entry: Any) -> dict[str, Any]:
    data = graph()
    data[key][index] = entry
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], ":1: no JSON object, expected node-link JSON of networkx"),
        (graph(directed=True), ":2: a directed graph, expected an undirected one, where an edge is a cable"),
        (graph(edges=7), ":29: no list 'edges', expected nodes and edges"),
        (
            changed("nodes", 1, id="left", kind="host"),
            ":11: node 'left' is there twice or has no id, expected an id for each",
        ),
        (changed("nodes", 0, id="left", kind="rack"), ":6: node 'left' has kind 'rack', expected host or switch"),
        (
            changed("edges", 0, source="left", target="c", rate=1),
            ":30: unknown node 'c', expected source and target to be ids of nodes",
        ),
        (
            changed("edges", 0, source="left", target="a", rate="1"),
            ":30: rate is '1', expected a rate such as 200Gbps, or bit/s",
        ),
        (
            changed("edges", 0, source="left", target="right", rate=1),
            ":30: an edge joins 'left' and 'right', expected a switch at one end at least",
        ),
        (
            changed("edges", 2, source="b", target="a", rate=1),
            ":5: switch top is on no way of at most two tiers above a ToR, expected ToRs, aggregation, core",
        ),
    ],
)
def test_what_is_wrong_names_its_line(tmp_path: Path, data: object, message: str) -> None:
    if isinstance(data, dict) and message.startswith(":5"):
        data["edges"][3] = data["edges"][2]
    with pytest.raises(FabricFileError) as refused:
        reading(tmp_path, data)
    assert str(refused.value) == f"{tmp_path / 'graph.json'}{message}"


@pytest.mark.parametrize(
    "text", ["", "{", '{"nodes": [1e999]}', "[" * 100_000, '{"nodes": [{"id": ' + "9" * 5000 + "}]}"]
)
def test_what_is_no_graph_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "graph.json"
    file.write_text(text, "utf-8")
    with pytest.raises(FabricFileError) as refused:
        read(file)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ('<?xml version="1.0"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph/></graphml>', "GraphML"),
        ('Creator "yFiles"\ngraph [\n  node [ id 0 ]\n]\n', "GML"),
        ("graph [ node [ id 0 ] ]", "GML"),
    ],
)
def test_graphs_in_other_forms_are_named_as_what_they_are(text: str, form: str, tmp_path: Path) -> None:
    path = tmp_path / "fabric"
    path.write_text(text)
    reader = f"read_{form.lower()}"
    with pytest.raises(FabricFileError, match=rf"fabric:1: this is {form}, expected node-link JSON .*{reader}\(FILE\)"):
        read(path)
