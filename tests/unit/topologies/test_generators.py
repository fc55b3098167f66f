"""Fabrics have the nodes and links that their parameters promise, and impossible ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from link_counts import count_links

from topologies.clos import clos, clos3, clos96
from topologies.double_sided import double_sided
from topologies.fabric import Fabric

SMALL = st.integers(1, 3)
RATES: dict[str, Any] = {"port_rate": 100e9, "fabric_rate": 100e9}


@st.composite
def clos_parameters(draw: st.DrawFn) -> dict[str, Any]:
    """Parameters of a small two-layer Clos."""
    tors, nics = draw(SMALL), draw(SMALL)
    return {
        "hosts": tors * draw(SMALL),
        "gpus_per_host": nics * draw(SMALL),
        "nics_per_host": nics,
        "ports_per_nic": draw(SMALL),
        "tors": tors,
        "aggregations": draw(SMALL),
        "parallel_links": draw(SMALL),
        "bonded": draw(st.booleans()),
        **RATES,
    }


@st.composite
def clos3_parameters(draw: st.DrawFn) -> dict[str, Any]:
    """Parameters of a small three-layer Clos."""
    pods, tors, nics = draw(SMALL), draw(SMALL), draw(SMALL)
    return {
        "pods": pods,
        "hosts": pods * tors * draw(st.integers(1, 2)),
        "gpus_per_host": nics,
        "nics_per_host": nics,
        "tors_per_pod": tors,
        "aggregations_per_pod": draw(SMALL),
        "cores": draw(SMALL),
        "parallel_links": draw(st.integers(1, 2)),
        "bonded": draw(st.booleans()),
        **RATES,
    }


@st.composite
def double_sided_parameters(draw: st.DrawFn) -> dict[str, Any]:
    """Parameters of a small double-sided fabric."""
    pairs, nics = draw(SMALL), draw(SMALL)
    return {
        "hosts": pairs * draw(SMALL),
        "gpus_per_host": nics * draw(SMALL),
        "nics_per_host": nics,
        "ports_per_nic": 2 * draw(st.integers(1, 2)),
        "tors": 2 * pairs,
        "aggregations": draw(SMALL),
        "cores": draw(SMALL),
        "parallel_links": draw(st.integers(1, 2)),
        "bonded": draw(st.booleans()),
        **RATES,
    }


ANY_FABRIC = st.one_of(
    clos_parameters().map(lambda p: clos(**p)),
    clos3_parameters().map(lambda p: clos3(**p)),
    double_sided_parameters().map(lambda p: double_sided(**p)),
)


def test_bonded_clos96_is_the_crux_testbed_with_48_host_and_48_fabric_cables() -> None:
    fabric = clos96()
    links = count_links(fabric)
    assert (len(fabric.gpus), len(fabric.hosts), len(fabric.nics)) == (96, 12, 48)
    assert (links["host-tor"], links["tor-agg"]) == (2 * 48, 2 * 48)
    assert {link.capacity for link in fabric.network_links} == {200e9}


def test_unbonded_clos96_has_192_cables() -> None:
    fabric = clos96(bonded=False)
    assert len(fabric.network_links) == 2 * 192
    assert len(fabric.ports) == 96
    assert {link.capacity for link in fabric.network_links} == {100e9}


def test_clos96_is_one_to_one() -> None:
    for bonded in (True, False):
        fabric = clos96(bonded=bonded)
        for tor in (name for name, switch in fabric.switches.items() if switch.tier == "tor"):
            links = fabric.links_from[tor]
            up = sum(link.capacity for link in links if link.kind == "tor-agg")
            assert up == sum(link.capacity for link in links if link.kind == "host-tor") == 1.6e12


def test_two_gpus_share_a_nic_and_hosts_go_to_tors_in_order() -> None:
    fabric = clos96()
    assert fabric.nics["h3n1"].gpus == ("h3g2", "h3g3")
    assert fabric.nics["h3n1"].pcie_switch == "h3s1"
    assert [fabric.ports[f"h{host}n0p0"].switch for host in range(4)] == ["tor0", "tor0", "tor1", "tor1"]


def test_links_are_named_by_their_ends_and_parallel_cables_are_numbered() -> None:
    fabric = clos96(bonded=False)
    assert fabric.links["h0n0p1->tor0"].reverse == "tor0->h0n0p1"
    assert fabric.links["tor0->agg3.1"].reverse == "agg3->tor0.1"
    assert fabric.links["h3g2->h3s1"].capacity == fabric.links["h3s1->h3n1"].capacity == 256e9
    assert fabric.links["h3g2->h3nv"].capacity == 2400e9
    assert "tor0->agg3" in clos96().links


def test_ports_of_a_double_sided_host_go_to_both_tors_of_its_pair() -> None:
    fabric = double_sided(hosts=6, gpus_per_host=8)
    assert [fabric.ports[f"h{host}n2p{port}"].switch for host in (0, 2) for port in (0, 1)] == [
        "tor0",
        "tor1",
        "tor2",
        "tor3",
    ]
    per_tor = [port.switch for port in fabric.ports.values() if port.host == "h5"]
    assert (per_tor.count("tor4"), per_tor.count("tor5")) == (4, 4)


def test_default_double_sided_fabric_has_the_counts_of_the_paper() -> None:
    fabric = double_sided()
    tiers = [switch.tier for switch in fabric.switches.values()]
    assert (tiers.count("tor"), tiers.count("agg"), tiers.count("core")) == (6, 12, 32)
    assert len(fabric.gpus) == 2016


@given(clos_parameters())
@settings(max_examples=40, deadline=None)
def test_clos_counts_follow_the_closed_formula(p: dict[str, Any]) -> None:
    fabric, links = clos(**p), count_links(clos(**p))
    ports = p["hosts"] * p["nics_per_host"] * (1 if p["bonded"] else p["ports_per_nic"])
    cables = p["tors"] * p["aggregations"] * (1 if p["bonded"] else p["parallel_links"])
    assert (len(fabric.switches), len(fabric.ports)) == (p["tors"] + p["aggregations"], ports)
    assert (links["host-tor"], links["tor-agg"]) == (2 * ports, 2 * cables)
    assert links["pcie"] == 2 * p["hosts"] * (p["gpus_per_host"] + p["nics_per_host"])
    assert links["nvlink"] == 2 * p["hosts"] * p["gpus_per_host"]


@given(clos3_parameters())
@settings(max_examples=25, deadline=None)
def test_three_layer_counts_follow_the_closed_formula(p: dict[str, Any]) -> None:
    links = count_links(clos3(**p))
    cables = 1 if p["bonded"] else p["parallel_links"]
    aggregations = p["pods"] * p["aggregations_per_pod"]
    assert links["tor-agg"] == 2 * aggregations * p["tors_per_pod"] * cables
    assert links["agg-core"] == 2 * aggregations * p["cores"] * cables


@given(double_sided_parameters())
@settings(max_examples=25, deadline=None)
def test_double_sided_counts_follow_the_closed_formula(p: dict[str, Any]) -> None:
    links = count_links(double_sided(**p))
    cables = 1 if p["bonded"] else p["parallel_links"]
    ports = p["hosts"] * p["nics_per_host"] * (2 if p["bonded"] else p["ports_per_nic"])
    assert links["host-tor"] == 2 * ports
    assert links["tor-agg"] == 2 * p["tors"] * p["aggregations"] * cables
    assert links["agg-core"] == 2 * p["aggregations"] * p["cores"] * cables


@given(clos_parameters())
@settings(max_examples=25, deadline=None)
def test_bonding_keeps_the_summed_rate(p: dict[str, Any]) -> None:
    one, other = clos(**{**p, "bonded": True}), clos(**{**p, "bonded": False})
    assert sum(link.capacity for link in one.network_links) == pytest.approx(
        sum(link.capacity for link in other.network_links)
    )


@given(ANY_FABRIC)
@settings(max_examples=40, deadline=None)
def test_every_link_has_its_opposite(fabric: Fabric) -> None:
    for name, link in fabric.links.items():
        back = fabric.links[link.reverse]
        assert (back.source, back.target, back.reverse) == (link.target, link.source, name)
        assert (back.kind, back.capacity) == (link.kind, link.capacity)


@given(ANY_FABRIC, st.data())
@settings(max_examples=40, deadline=None)
def test_candidate_paths_are_joined_loop_free_and_of_equal_length(fabric: Fabric, data: st.DataObject) -> None:
    ports = sorted(fabric.ports)
    if len(ports) < 2:
        return
    source, target = data.draw(st.lists(st.sampled_from(ports), min_size=2, max_size=2, unique=True))
    paths = fabric.candidate_paths(source, target)
    assert paths and len(set(paths)) == len(paths)
    assert len({len(path) for path in paths}) == 1
    for path in paths:
        nodes = [source, *(fabric.links[name].target for name in path)]
        assert nodes[-1] == target and len(set(nodes)) == len(nodes)
        assert [fabric.links[name].source for name in path] == nodes[:-1]


def test_paths_between_tors_of_clos96_turn_at_each_aggregation_switch() -> None:
    assert len(clos96().candidate_paths("h0n0p0", "h2n0p0")) == 8
    assert len(clos96(bonded=False).candidate_paths("h0n0p0", "h2n0p0")) == 32
    assert clos96().candidate_paths("h0n0p0", "h1n0p0") == (("h0n0p0->tor0", "tor0->h1n0p0"),)


CLOS: dict[str, Any] = {"hosts": 4, "gpus_per_host": 4, "nics_per_host": 2, "tors": 2, "aggregations": 2, **RATES}
CLOS3: dict[str, Any] = {
    "pods": 2,
    "hosts": 4,
    "gpus_per_host": 4,
    "nics_per_host": 2,
    "tors_per_pod": 2,
    "aggregations_per_pod": 2,
    "cores": 2,
    **RATES,
}


@pytest.mark.parametrize(
    ("make", "good", "bad", "reason"),
    [
        (clos, CLOS, {"hosts": 0}, "hosts must be at least 1, not 0"),
        (clos, CLOS, {"tors": 0}, "tors must be at least 1, not 0"),
        (clos, CLOS, {"aggregations": -1}, "aggregations must be at least 1, not -1"),
        (clos, CLOS, {"parallel_links": 0}, "parallel_links must be at least 1, not 0"),
        (clos, CLOS, {"ports_per_nic": 0}, "ports_per_nic must be at least 1, not 0"),
        (clos, CLOS, {"hosts": 5}, "hosts must divide evenly over the 2 ToRs, 5 does not"),
        (clos, CLOS, {"gpus_per_host": 3}, "gpus_per_host must divide evenly over the 2 NICs of a host, 3 does not"),
        (clos, CLOS, {"port_rate": 0.0}, "port_rate must be above 0 bit/s, not 0"),
        (clos, CLOS, {"fabric_rate": float("nan")}, "fabric_rate must be above 0 bit/s, not nan"),
        (clos, CLOS, {"hosts": 65538}, "hosts must be at most 65536, not 65538"),
        (clos, CLOS, {"ports_per_nic": 128}, "ports_per_nic must leave a host at most 254 ports, not 2 NICs x 128"),
        (clos3, CLOS3, {"cores": 0}, "cores must be at least 1, not 0"),
        (clos3, CLOS3, {"pods": 3}, "hosts must divide evenly over the 6 ToRs of all pods, 4 does not"),
        (clos3, CLOS3, {"core_rate": -1.0}, "core_rate must be above 0 bit/s, not -1"),
        (double_sided, {}, {"tors": 5}, "tors must divide evenly over the 2 sides of a pair, 5 does not"),
        (double_sided, {}, {"ports_per_nic": 3}, "ports_per_nic must divide evenly over the 2 ToRs of a pair, 3 does"),
        (double_sided, {}, {"hosts": 4}, "hosts must divide evenly over the 3 ToR pairs, 4 does not"),
    ],
)
def test_impossible_parameters_are_refused_by_name(
    make: Callable[..., Fabric], good: dict[str, Any], bad: dict[str, Any], reason: str
) -> None:
    make(**good)
    with pytest.raises(ValueError) as error:
        make(**{**good, **bad})
    assert str(error.value).startswith(reason)


def test_pcie_switches_are_joined_by_a_root_complex_only_where_gpus_talk_over_pcie() -> None:
    parameters = {"hosts": 2, "gpus_per_host": 4, "nics_per_host": 2, "tors": 1, "aggregations": 1, **RATES}
    plain, over_pcie = clos(**parameters), clos(**parameters, intra_host="pcie")
    added = over_pcie.links.keys() - plain.links.keys()
    assert added == {f"h{h}{a}->h{h}{b}" for h in (0, 1) for s in ("s0", "s1") for a, b in ((s, "rc"), ("rc", s))}
    assert {over_pcie.links[name].capacity for name in added} == {256e9}


def test_links_inside_hosts_get_queues_only_where_they_are_emulated() -> None:
    parameters = {"hosts": 2, "gpus_per_host": 4, "nics_per_host": 2, "tors": 1, "aggregations": 1, **RATES}
    plain, emulated = clos(**parameters, pcie_rate=50e9), clos(**parameters, pcie_rate=50e9, pcie_queues="emulated")
    assert plain.shaped_links == plain.network_links
    inside = emulated.shaped_links[len(emulated.network_links) :]
    assert [link.name for link in inside[:2]] == ["h0s0->h0n0", "h0n0->h0s0"]
    assert len(inside) == 2 * 4


def test_pcie_as_fast_as_all_ports_of_its_nic_needs_no_queue() -> None:
    parameters = {"hosts": 2, "gpus_per_host": 2, "nics_per_host": 1, "tors": 1, "aggregations": 1, "ports_per_nic": 2}
    for rate, nics in ((200e9, ()), (199e9, ("h0n0", "h1n0"))):
        assert clos(**parameters, **RATES, pcie_rate=rate, pcie_queues="emulated").shaped_nics == nics


@pytest.mark.parametrize("generator", [clos, clos3, double_sided])
def test_options_inside_hosts_are_checked_by_name(generator: Callable[..., Fabric]) -> None:
    parameters = {
        clos: {"tors": 1, "aggregations": 1},
        clos3: {"pods": 1, "tors_per_pod": 1, "aggregations_per_pod": 1, "cores": 1},
        double_sided: {},
    }[generator]
    shape = {"hosts": 3, "gpus_per_host": 2, "nics_per_host": 1, **RATES}
    with pytest.raises(ValueError, match=r"^intra_host must be instant, nvlink or pcie, not 'wire'$"):
        generator(**shape, **parameters, intra_host="wire")
    with pytest.raises(ValueError, match=r"^pcie_queues must be ideal or emulated, not 'real'$"):
        generator(**shape, **parameters, pcie_queues="real")
