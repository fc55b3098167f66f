"""The way of packets over the queues of PCIe, as commands."""

from __future__ import annotations

import pytest

from topologies.addressing import interface_name
from topologies.clos import clos
from topologies.double_sided import double_sided
from topologies.mininet_adapter.detours import Detour, detour_commands, device_commands

DETOURS = [Detour("h0n0p0", "h0s0", "h0n0"), Detour("h0n0p1", "h0s0", "h0n0")]


def test_ports_of_a_nic_share_two_devices_that_are_made_once() -> None:
    commands = list(device_commands(DETOURS, 9000))
    assert [command for command in commands if command.startswith("link add")] == [
        "link add h0s0 mtu 9000 type ifb",
        "link add h0n0 mtu 9000 type ifb",
    ]
    assert commands[-1] == "link set h0n0 up"


def test_what_a_port_sends_goes_over_one_device_and_what_it_receives_over_the_other() -> None:
    commands = list(detour_commands(DETOURS))
    for port in ("h0n0p0", "h0n0p1"):
        own = [command for command in commands if f"dev {port} " in f"{command} "]
        assert own[0] == f"qdisc add dev {port} clsact"
        assert [command.split()[4] for command in own[1:]] == ["egress", "ingress"]
        assert [command.split()[-1] for command in own[1:]] == ["h0s0", "h0n0"]


@pytest.mark.parametrize("make", [clos, double_sided])
def test_every_queue_of_a_host_has_an_interface_of_its_own(make: object) -> None:
    shape = {"hosts": 4, "gpus_per_host": 4, "nics_per_host": 2, "ports_per_nic": 2, "tors": 2, "aggregations": 2}
    fabric = make(**shape, port_rate=1e11, fabric_rate=1e11, pcie_rate=1e11, pcie_queues="emulated")  # type: ignore[operator]
    names = [interface_name(fabric, link) for link in fabric.shaped_links]
    assert len(set(names)) == len(names)
    assert interface_name(fabric, "h3s1->h3n1") == "h3s1" and interface_name(fabric, "h3n1->h3s1") == "h3n1"


def test_links_that_are_not_emulated_have_no_interface() -> None:
    fabric = clos(
        hosts=1,
        gpus_per_host=2,
        nics_per_host=1,
        tors=1,
        aggregations=1,
        port_rate=1e11,
        fabric_rate=1e11,
        intra_host="pcie",
    )
    for link in ("h0g0->h0s0", "h0g0->h0nv", "h0s0->h0rc"):
        with pytest.raises(ValueError, match="does not leave a switch"):
            interface_name(fabric, link)
