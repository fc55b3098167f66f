"""Alibaba HPN (Qian et al., SIGCOMM'24): rail-optimised, each NIC with a port to both ToRs of its rail's pair.

In a segment every rail has two ToRs; port 0 of a rail's NICs connects to the first, port 1 to the second (section 4).
In one plane all ToRs mesh with all aggregation switches. In two planes (section 5) the first ToRs of the pairs mesh
with one half of the aggregation switches and the second ones with the other: what leaves by a port arrives by the
port of the same number, and no path joins the planes. Here is one pod; cores between pods are left out.
"""

from __future__ import annotations

from typing import Annotated

from topologies.fabric import Fabric
from topologies.generators.segments import Segments
from topologies.hosts import NVLINK_RATE, PCIE_RATE, HostShape
from topologies.parameters import (
    Bonded,
    Count,
    FabricRate,
    GpusPerHost,
    HostsPerSegment,
    IntraHostTraffic,
    NvlinkRate,
    ParallelLinks,
    PcieRate,
    PcieToNics,
    PortRate,
    fabric_kind,
)


@fabric_kind("hpn")
def hpn(
    *,
    gpus_per_host: GpusPerHost = 8,
    nics_per_host: Annotated[int, Count("NICs of a host: its rails, each with a pair of ToRs per segment")] = 8,
    port_rate: PortRate = 200e9,
    fabric_rate: FabricRate = 400e9,
    parallel_links: ParallelLinks = 1,
    bonded: Bonded = False,
    pcie_rate: PcieRate = PCIE_RATE,
    nvlink_rate: NvlinkRate = NVLINK_RATE,
    intra_host: IntraHostTraffic = "instant",
    pcie_queues: PcieToNics = "ideal",
    hosts: Annotated[int, Count("number of hosts in all segments together")],
    segments: Annotated[int, Count("number of segments: hosts under the same ToRs")] = 1,
    hosts_per_segment: HostsPerSegment = None,
    planes: Annotated[int, Count("1: all ToRs share the aggregation switches; 2: a half for each side")] = 2,
    aggregations: Annotated[int, Count("number of aggregation switches in all planes together")],
) -> Fabric:
    """Return one pod of ``segments`` x ``nics_per_host`` pairs of ToRs; hosts go to segments in order.

    Rail k of segment s is on ToRs ``2 * (s * nics_per_host + k)`` and the one after. Raises ``ValueError`` naming the
    parameter that makes the fabric impossible.
    """
    rates = (port_rate, pcie_rate, nvlink_rate)
    shape = HostShape(hosts, gpus_per_host, nics_per_host, 2, *rates, intra_host, pcie_queues)
    layout = Segments(shape, segments, nics_per_host, planes, hosts_per_segment)
    return layout.build("hpn", aggregations, fabric_rate, parallel_links, bonded)
