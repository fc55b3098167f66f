"""Addresses, datapath ids, OpenFlow port numbers and interface names: fixed functions of a fabric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from topologies.fabric import Fabric, Link, Tier

MAX_INTERFACE_NAME: Final = 15
"""Linux keeps interface names below IFNAMSIZ = 16."""

_TIER_NUMBER: Final[Mapping[Tier, int]] = {"tor": 1, "agg": 2, "core": 3}


def port_index(fabric: Fabric, port: str) -> int:
    """Return the number of ``port`` among its host's ports, NIC by NIC, from 0; ``KeyError`` if unknown."""
    owner = fabric.ports[port]
    before = 0
    for nic in fabric.hosts[owner.host].nics:
        if nic == owner.nic:
            break
        before += len(fabric.nics[nic].ports)
    return before + fabric.nics[owner.nic].ports.index(port)


def address_of(fabric: Fabric, port: str) -> str:
    """Return the IPv4 address of ``port``: 10.<host index, two bytes>.<port index + 1>."""
    host = fabric.hosts[fabric.ports[port].host].index
    return f"10.{host >> 8}.{host & 255}.{port_index(fabric, port) + 1}"


def mac_of(fabric: Fabric, port: str) -> str:
    """Return the locally administered MAC address of ``port``; it holds the same numbers as the IPv4 address."""
    host = fabric.hosts[fabric.ports[port].host].index
    return f"02:00:00:{host >> 8:02x}:{host & 255:02x}:{port_index(fabric, port) + 1:02x}"


def datapath_id(fabric: Fabric, switch: str) -> int:
    """Return the OpenFlow datapath id of ``switch``: its tier above bit 32, its index + 1 below; never 0."""
    node = fabric.switches[switch]
    return _TIER_NUMBER[node.tier] << 32 | node.index + 1


def port_number(fabric: Fabric, link: Link | str) -> int:
    """Return the OpenFlow port, from 1, of ``link`` at the switch it leaves.

    Raises ``ValueError`` for a link that leaves no switch.
    """
    found = fabric.links[link] if isinstance(link, str) else link
    if found.source not in fabric.switches:
        raise ValueError(f"link '{found.name}' does not leave a switch")
    return fabric.place_of_link[found.name] + 1


def is_nic_link(fabric: Fabric, link: Link) -> bool:
    """Whether ``link`` joins a NIC and its PCIe switch."""
    return link.kind == "pcie" and (link.source in fabric.nics or link.target in fabric.nics)


def port_numbers(fabric: Fabric) -> Mapping[str, int]:
    """Return link name -> OpenFlow port at its source, for every link that leaves a switch, in a fixed order."""
    return {
        link.name: fabric.place_of_link[link.name] + 1
        for switch in fabric.switches
        for link in fabric.links_from.get(switch, ())
    }


def interface_name(fabric: Fabric, link: Link | str) -> str:
    """Return the Linux interface from which a directed link transmits: ``h0n0p0`` or ``tor0-eth3``.

    Links between PCIe switch and NIC have one where they are emulated, named after the sending end:
    ``h0s0`` or ``h0n0``. Raises ``ValueError`` for other links inside a host, and for a name longer than
    Linux allows.
    """
    found = fabric.links[link] if isinstance(link, str) else link
    if found.source in fabric.ports or is_nic_link(fabric, found):
        name = found.source
    else:
        name = f"{found.source}-eth{port_number(fabric, found)}"
    if len(name) > MAX_INTERFACE_NAME:
        raise ValueError(f"interface name '{name}' is longer than {MAX_INTERFACE_NAME} characters")
    return name
