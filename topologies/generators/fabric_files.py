"""Fabrics that a file describes: a topology of SimAI, or a node-link graph of networkx."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from topologies.fabric import Fabric
from topologies.formats.errors import FabricFileError
from topologies.formats.node_link import read as read_node_link
from topologies.formats.simai import read as read_simai
from topologies.formats.wiring import Inside
from topologies.hosts import PCIE_RATE
from topologies.parameters import File, IntraHostTraffic, PcieRate, PcieToNics, fabric_kind


@fabric_kind("simai")
def simai_file(
    *,
    simai: Annotated[str, File("file of a SimAI topology, relative to the scenario")],
    pcie_rate: PcieRate = PCIE_RATE,
    intra_host: IntraHostTraffic = "instant",
    pcie_queues: PcieToNics = "ideal",
) -> Fabric:
    """Return the fabric of a SimAI topology; every GPU has a NIC of its own.

    Raises ``ValueError``, ``simai`` first, with the file's line where it cannot be used.
    """
    return _read("simai", read_simai, simai, Inside(pcie_rate, intra_host, pcie_queues))


@fabric_kind("node-link")
def node_link_file(
    *,
    node_link: Annotated[str, File("file of a node-link graph of networkx (JSON), relative to the scenario")],
    pcie_rate: PcieRate = PCIE_RATE,
    intra_host: IntraHostTraffic = "instant",
    pcie_queues: PcieToNics = "ideal",
) -> Fabric:
    """Return the fabric of a node-link graph: hosts, switches, and an edge for each cable.

    Raises ``ValueError``, ``node_link`` first, with the file's line where it cannot be used.
    """
    return _read("node_link", read_node_link, node_link, Inside(pcie_rate, intra_host, pcie_queues))


def _read(key: str, reader: Callable[[Path, Inside], Fabric], file: str, inside: Inside) -> Fabric:
    try:
        return reader(Path(file), inside)
    except FabricFileError as error:
        raise ValueError(f"{key} {error}") from None
