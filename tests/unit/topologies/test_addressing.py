"""Addresses, ids, port numbers and interface names are unique, fixed and fit for Linux."""

from __future__ import annotations

import ipaddress
from dataclasses import replace

import pytest

from topologies.addressing import address_of, datapath_id, interface_name, mac_of, port_number, port_numbers
from topologies.clos import clos, clos96
from topologies.double_sided import double_sided
from topologies.fabric import Fabric, Link, Switch

FABRICS = [clos96(), clos96(bonded=False), double_sided(hosts=270)]


@pytest.mark.parametrize("fabric", FABRICS, ids=["bonded", "ports", "double-sided"])
def test_every_port_has_an_ipv4_and_a_mac_address_of_its_own(fabric: Fabric) -> None:
    addresses = {ipaddress.IPv4Address(address_of(fabric, port)) for port in fabric.ports}
    macs = {mac_of(fabric, port) for port in fabric.ports}
    assert len(addresses) == len(macs) == len(fabric.ports)
    assert all(address in ipaddress.ip_network("10.0.0.0/8") for address in addresses)
    assert all(mac.startswith("02:") and len(mac) == 17 for mac in macs)


def test_an_address_spells_host_and_port() -> None:
    fabric = double_sided(hosts=270)
    assert address_of(fabric, "h3n1p1") == "10.0.3.4"
    assert address_of(fabric, "h260n0p0") == "10.1.4.1"
    assert mac_of(fabric, "h260n0p0") == "02:00:00:01:04:01"


@pytest.mark.parametrize("fabric", FABRICS, ids=["bonded", "ports", "double-sided"])
def test_datapath_ids_are_unique_and_fit_64_bits(fabric: Fabric) -> None:
    ids = {datapath_id(fabric, switch) for switch in fabric.switches}
    assert len(ids) == len(fabric.switches)
    assert all(0 < number < 2**64 for number in ids)


@pytest.mark.parametrize("fabric", FABRICS, ids=["bonded", "ports", "double-sided"])
def test_ports_of_a_switch_are_numbered_from_one_without_gaps(fabric: Fabric) -> None:
    numbers = port_numbers(fabric)
    for switch in fabric.switches:
        links = fabric.links_from[switch]
        assert [numbers[link.name] for link in links] == list(range(1, len(links) + 1))
        assert port_number(fabric, links[-1]) == numbers[links[-1].name]
    assert len(numbers) == sum(link.source in fabric.switches for link in fabric.network_links)


@pytest.mark.parametrize("fabric", FABRICS[:2], ids=["bonded", "ports"])
def test_interface_names_are_unique_and_short(fabric: Fabric) -> None:
    names = [interface_name(fabric, link) for link in fabric.network_links]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) <= 15


def test_an_interface_is_named_after_the_end_that_transmits() -> None:
    fabric = clos96()
    assert interface_name(fabric, "h0n0p0->tor0") == "h0n0p0"
    assert interface_name(fabric, "tor0->h0n0p0") == "tor0-eth1"
    assert interface_name(fabric, fabric.links["tor0->agg0"]) == "tor0-eth9"


def test_links_inside_a_host_have_neither_port_nor_interface() -> None:
    with pytest.raises(ValueError, match="'h0g0->h0s0' does not leave a switch"):
        interface_name(clos96(), "h0g0->h0s0")


def test_an_interface_name_too_long_for_linux_is_refused() -> None:
    fabric = clos(hosts=1, gpus_per_host=1, nics_per_host=1, tors=1, aggregations=1000, port_rate=1e9, fabric_rate=1e9)
    assert interface_name(fabric, "tor0->agg999") == "tor0-eth1001"
    renamed = Link("aggregation99->tor0", "aggregation99", "tor0", "tor-agg", 1e9, "tor0->aggregation99")
    long = replace(
        fabric,
        switches={**fabric.switches, "aggregation99": Switch("aggregation99", "agg", 1000)},
        links={**fabric.links, renamed.name: renamed},
    )
    with pytest.raises(ValueError, match="'aggregation99-eth1' is longer than 15"):
        interface_name(long, renamed)
