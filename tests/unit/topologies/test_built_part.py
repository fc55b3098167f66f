"""What an emulation builds of a fabric: every path that a connection may take, and nothing that none can take."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from topologies.built_part import used_part, whole
from topologies.clos import clos, clos3
from topologies.fabric import Fabric

FAT_TREE = clos3(
    pods=4,
    hosts=16,
    tors_per_pod=2,
    aggregations_per_pod=2,
    cores=4,
    gpus_per_host=1,
    nics_per_host=1,
    port_rate=1e11,
    fabric_rate=1e11,
    core_rate=1e11,
)
RAILS = clos(hosts=4, gpus_per_host=2, nics_per_host=2, tors=2, aggregations=2, port_rate=1e11, fabric_rate=1e11)


@st.composite
def joined_ports(draw: st.DrawFn) -> tuple[Fabric, list[tuple[str, str]]]:
    fabric = draw(st.sampled_from([FAT_TREE, RAILS]))
    ports = st.sampled_from(sorted(fabric.ports))
    pairs = st.tuples(ports, ports).filter(lambda pair: fabric.ports[pair[0]].host != fabric.ports[pair[1]].host)
    return fabric, draw(st.lists(pairs, min_size=1, max_size=6))


@given(joined_ports())
def test_every_candidate_path_is_built_in_both_directions(drawn: tuple[Fabric, list[tuple[str, str]]]) -> None:
    fabric, pairs = drawn
    part = used_part(fabric, {fabric.ports[port].host for pair in pairs for port in pair}, pairs)
    for pair in pairs:
        for path in fabric.candidate_paths(*pair):
            assert part.links.issuperset(path)
            assert {fabric.links[link].reverse for link in path} <= part.links


@given(joined_ports())
def test_every_cable_has_both_of_its_ends(drawn: tuple[Fabric, list[tuple[str, str]]]) -> None:
    fabric, pairs = drawn
    part = used_part(fabric, {fabric.ports[port].host for pair in pairs for port in pair}, pairs)
    for link in (fabric.links[name] for name in part.links):
        for end in (link.source, link.target):
            built = fabric.ports[end].host in part.hosts if end in fabric.ports else end in part.switches
            assert built


def test_two_hosts_of_one_tor_need_no_other_switch() -> None:
    part = used_part(FAT_TREE, {"h0", "h1"}, [("h0n0p0", "h1n0p0")])
    assert (part.hosts, part.switches) == (("h0", "h1"), (FAT_TREE.ports["h0n0p0"].switch,))
    assert part.left_out_of(FAT_TREE).startswith("not built, since no job can use them: 14 hosts, 19 switches, ")


def test_of_a_fabric_that_is_used_everywhere_nothing_is_left_out() -> None:
    assert whole(RAILS).left_out_of(RAILS) == ""
    everyone = {host: RAILS.nics[RAILS.hosts[host].nics[0]].ports[0] for host in RAILS.hosts}
    pairs = [(a, b) for a in everyone.values() for b in everyone.values() if a != b]
    assert used_part(RAILS, RAILS.hosts, pairs).hosts == tuple(RAILS.hosts)
