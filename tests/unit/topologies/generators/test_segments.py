"""Rails have ToRs of their own, dual ToRs take a port each, planes never meet; impossible fabrics are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from link_counts import count_links

from topologies.clos import clos
from topologies.double_sided import double_sided
from topologies.fabric import Fabric
from topologies.generators.dcn_plus import dcn_plus
from topologies.generators.hpn import hpn
from topologies.generators.lingjun import LingjunHost, lingjun
from topologies.generators.rail_optimized import rail_optimized

SMALL = st.integers(1, 3)
HOST = {"gpus_per_host": 2, "nics_per_host": 2}


@st.composite
def common(draw: st.DrawFn) -> dict[str, Any]:
    """Parameters that the three generators share; as many GPUs as NICs, or twice."""
    nics, segments = draw(SMALL), draw(SMALL)
    return {
        "hosts": segments * draw(SMALL),
        "segments": segments,
        "nics_per_host": nics,
        "gpus_per_host": nics * draw(st.integers(1, 2)),
        "parallel_links": draw(st.integers(1, 2)),
        "bonded": draw(st.booleans()),
        "aggregations": 2 * draw(st.integers(1, 2)),
    }


RAIL_OPTIMIZED = common().map(lambda p: rail_optimized(**p))
HPN = st.builds(lambda p, planes: hpn(**p, planes=planes), common(), st.integers(1, 2))
DCN_PLUS = st.builds(lambda p, tors: dcn_plus(**p, tors_per_segment=tors), common(), st.integers(1, 2))


def switches_of(fabric: Fabric, tier: str) -> list[str]:
    return [name for name, switch in fabric.switches.items() if switch.tier == tier]


def side_of(fabric: Fabric, switch: str) -> set[int]:
    """The numbers of the ports on ``switch``."""
    ports = [link.target for link in fabric.links_from[switch] if link.target in fabric.ports]
    return {int(port.rpartition("p")[2]) for port in ports}


@given(st.one_of(RAIL_OPTIMIZED, HPN))
@settings(max_examples=30, deadline=None)
def test_a_tor_of_a_fabric_with_rails_has_the_nics_of_one_rail_and_segment(fabric: Fabric) -> None:
    for tor in switches_of(fabric, "tor"):
        ports = [fabric.ports[link.target] for link in fabric.links_from[tor] if link.target in fabric.ports]
        assert len({fabric.nics[port.nic].index for port in ports}) == 1
        assert len({port.host for port in ports}) == len(ports)


@given(st.one_of(RAIL_OPTIMIZED, HPN, DCN_PLUS))
@settings(max_examples=30, deadline=None)
def test_nics_of_a_rail_in_a_segment_reach_each_other_over_one_tor(fabric: Fabric) -> None:
    for host in fabric.hosts.values():
        for nic in host.nics:
            twin = fabric.nics[f"h0n{fabric.nics[nic].index}"]
            for port, other in zip(fabric.nics[nic].ports, twin.ports, strict=True):
                if host.name != "h0" and fabric.ports[port].switch == fabric.ports[other].switch:
                    assert [len(path) for path in fabric.candidate_paths(port, other)] == [2]


@given(common())
@settings(max_examples=30, deadline=None)
def test_counts_follow_the_closed_formula(p: dict[str, Any]) -> None:
    cables = 1 if p["bonded"] else p["parallel_links"]
    nics, ports = p["nics_per_host"], p["nics_per_host"] * p["hosts"]
    expected = [
        (rail_optimized(**p), p["segments"] * nics, ports, p["aggregations"]),
        (hpn(**p, planes=1), 2 * p["segments"] * nics, 2 * ports, p["aggregations"]),
        (hpn(**p, planes=2), 2 * p["segments"] * nics, 2 * ports, p["aggregations"] // 2),
        (dcn_plus(**p), p["segments"], ports, p["aggregations"]),
        (dcn_plus(**p, tors_per_segment=2), 2 * p["segments"], 2 * ports, p["aggregations"]),
    ]
    for fabric, tors, cabled, above in expected:
        links = count_links(fabric)
        assert len(switches_of(fabric, "tor")) == tors
        assert len(switches_of(fabric, "agg")) == p["aggregations"]
        assert (links["host-tor"], links["tor-agg"]) == (2 * cabled, 2 * tors * above * cables)


@given(common())
@settings(max_examples=20, deadline=None)
def test_no_path_joins_the_planes_of_hpn(p: dict[str, Any]) -> None:
    fabric = hpn(**p, planes=2)
    for link in fabric.network_links:
        if link.kind == "tor-agg":
            tor, upper = sorted((link.source, link.target), key=lambda name: name.startswith("agg"))
            plane = fabric.switches[upper].index // (p["aggregations"] // 2)
            assert side_of(fabric, tor) == {plane}
    with pytest.raises(ValueError, match="no path from switch 'tor0' to switch 'tor1'"):
        fabric.candidate_paths("h0n0p0", "h0n0p1")


@given(common())
@settings(max_examples=20, deadline=None)
def test_dcn_plus_with_one_tor_per_segment_is_a_clos(p: dict[str, Any]) -> None:
    tors = {"tors": p["segments"], "port_rate": 400e9, "fabric_rate": 400e9}
    same = clos(**{key: value for key, value in p.items() if key != "segments"}, **tors)
    assert dcn_plus(**p).links == same.links
    assert dcn_plus(**p).ports == same.ports


def test_rails_are_where_nics_of_a_host_are_on_different_tors() -> None:
    assert rail_optimized(hosts=2, aggregations=1, **HOST).has_rail_switches
    assert hpn(hosts=2, aggregations=2, **HOST).has_rail_switches
    single = LingjunHost("a", "D1", "P1", "A1")
    for fabric in (
        rail_optimized(hosts=2, aggregations=1, gpus_per_host=2, nics_per_host=1),
        dcn_plus(hosts=2, aggregations=1, tors_per_segment=2, **HOST),
        double_sided(hosts=6, **HOST),
        lingjun([single]),
    ):
        assert not fabric.has_rail_switches


def test_rails_of_a_segment_have_neighbouring_tors() -> None:
    fabric = rail_optimized(hosts=4, segments=2, aggregations=2, **HOST)
    on = {port.name: port.switch for port in fabric.ports.values()}
    assert [on[f"h{host}n{nic}p0"] for host in (0, 1, 2) for nic in (0, 1)] == ["tor0", "tor1"] * 2 + ["tor2", "tor3"]
    dual = hpn(hosts=4, segments=2, aggregations=2, **HOST)
    assert [port.switch for port in dual.ports.values() if port.host == "h2"] == ["tor4", "tor5", "tor6", "tor7"]
    assert dual.candidate_paths("h0n1p1", "h1n1p1") == (("h0n1p1->tor3", "tor3->h1n1p1"),)


def test_spectrum_x_by_default_has_eight_rails_of_400_gbps() -> None:
    fabric = rail_optimized(hosts=16, aggregations=64)
    assert fabric.description == "16 hosts x 8 GPUs in a segment, 8 ToRs, 64 aggregation"
    assert {link.capacity for link in fabric.network_links} == {400e9}


def test_a_pod_of_hpn_has_the_sizes_of_its_paper() -> None:
    fabric = hpn(hosts=1920, segments=15, aggregations=120)  # 15 segments of 1,024 GPUs
    assert len(fabric.gpus) == 15_360
    assert len(switches_of(fabric, "tor")) == 240
    assert fabric.description.endswith("in 15 segments, 240 ToRs, 120 aggregation in 2 planes")


@pytest.mark.parametrize(
    ("make", "bad", "reason"),
    [
        (rail_optimized, {"segments": 0}, "segments must be at least 1, not 0"),
        (rail_optimized, {"segments": 3}, "hosts must divide evenly over the 3 segments, 4 does not"),
        (rail_optimized, {"aggregations": 0}, "aggregations must be at least 1, not 0"),
        (rail_optimized, {"parallel_links": 0}, "parallel_links must be at least 1, not 0"),
        (rail_optimized, {"fabric_rate": 0.0}, "fabric_rate must be above 0 bit/s, not 0"),
        (rail_optimized, {"nics_per_host": 3}, "gpus_per_host must divide evenly over the 3 NICs of a host, 8 does"),
        (rail_optimized, {"hosts": 60000}, "hosts must have at most 2000000 links"),
        (hpn, {"planes": 3}, "planes must be 1 or 2, not 3"),
        (hpn, {"aggregations": 3}, "aggregations must divide evenly over the 2 planes, 3 does not"),
        (dcn_plus, {"tors_per_segment": 3}, "tors_per_segment must be 1 or 2, not 3"),
        (dcn_plus, {"aggregations": 300_000}, "switches must be at most 65536 together"),
    ],
)
def test_impossible_parameters_are_refused_by_name(
    make: Callable[..., Fabric], bad: dict[str, Any], reason: str
) -> None:
    good = {"hosts": 4, "aggregations": 4}
    make(**good)
    with pytest.raises(ValueError) as error:
        make(**{**good, **bad})
    assert str(error.value).startswith(reason)
