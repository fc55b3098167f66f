"""The hosts of ``topo.csv`` hang on the ToRs, groups and cores that it names."""

from __future__ import annotations

from pathlib import Path

import pytest
from link_counts import count_links

from topologies.generators.lingjun import host_names, lingjun, read_topology
from topologies.table import TraceError

TEXT = """ip,DSW,PSW,ASW
a,G6,P10,S10
b,G6,P10,S2
c,G6,P8,S2
d,G6,P10,S2
"""


def topology(tmp_path: Path, text: str = TEXT) -> Path:
    path = tmp_path / "topo.csv"
    path.write_text(text, "utf-8")
    return path


def test_hosts_come_tor_by_tor_in_the_order_of_the_labels_numbers(tmp_path: Path) -> None:
    hosts = read_topology(topology(tmp_path))
    assert [host.ip for host in hosts] == ["c", "b", "d", "a"]
    assert host_names(hosts) == {"c": "h0", "b": "h1", "d": "h2", "a": "h3"}


def test_one_label_under_two_groups_is_two_tors(tmp_path: Path) -> None:
    fabric = lingjun(read_topology(topology(tmp_path)))
    tors = [fabric.ports[f"h{host}n0p0"].switch for host in range(4)]
    assert tors == ["tor0", "tor1", "tor1", "tor2"]
    assert len(fabric.gpus) == 32


def test_a_group_is_meshed_and_groups_meet_at_cores_only(tmp_path: Path) -> None:
    hosts = read_topology(topology(tmp_path))
    fabric = lingjun(hosts, aggregations_per_group=3, cores_per_group=2)
    assert len(fabric.candidate_paths("h1n0p0", "h2n0p0")) == 1
    assert len(fabric.candidate_paths("h1n0p0", "h3n0p0")) == 3
    assert len(fabric.candidate_paths("h0n0p0", "h3n0p0")) == 3 * 2 * 3
    counts = count_links(fabric)
    assert (counts["tor-agg"], counts["agg-core"]) == (2 * 3 * 3, 2 * 6 * 2)


def test_one_switch_per_label_leaves_one_path(tmp_path: Path) -> None:
    fabric = lingjun(read_topology(topology(tmp_path)), aggregations_per_group=1, cores_per_group=1)
    assert [switch.tier for switch in fabric.switches.values()] == ["tor"] * 3 + ["agg"] * 2 + ["core"]
    assert len(fabric.candidate_paths("h0n0p0", "h3n0p0")) == 1


def test_a_full_tor_is_not_oversubscribed_by_default(tmp_path: Path) -> None:
    rows = "".join(f"x{number},G6,P8,S2\n" for number in range(8))
    fabric = lingjun(read_topology(topology(tmp_path, "ip,DSW,PSW,ASW\n" + rows)))
    down = sum(link.capacity for link in fabric.links.values() if link.kind == "host-tor" and link.target == "tor0")
    up = sum(link.capacity for link in fabric.links.values() if link.kind == "tor-agg" and link.source == "tor0")
    assert down == up == 8 * 8 * 100e9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ip,DSW,PSW\na,G6,P8\n", "topo.csv:1: no column ASW, expected the columns ip, DSW, PSW, ASW"),
        (TEXT + "a,G6,P8,S2\n", "topo.csv:6: host a is listed in line 2 already, expected each host once"),
        (TEXT + "e,G6,,S2\n", "topo.csv:6: PSW is empty, expected a host and its three switches"),
        ("ip,DSW,PSW,ASW\n", "topo.csv: there are no hosts, expected a row per host"),
    ],
)
def test_a_damaged_topology_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        read_topology(topology(tmp_path, text))
    assert str(caught.value) == f"{tmp_path}/{message}"


def test_an_impossible_fabric_names_its_parameter(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="aggregations_per_group must be at least 1"):
        lingjun(read_topology(topology(tmp_path)), aggregations_per_group=0)
    with pytest.raises(ValueError, match="ports_per_nic must be at least 1"):
        lingjun(read_topology(topology(tmp_path)), ports_per_nic=0)
