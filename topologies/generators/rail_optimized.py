"""Rail-optimised fabrics: in a segment, NIC k of every host connects to ToR k, so that a rail stays on its switch.

NVIDIA Spectrum-X and other GPU clusters are cabled so, with a ToR per rail; SimAI (Wang et al., NSDI'25) has it as
its template ``Spectrum-X``. Segments are joined by aggregation switches (spines), fully meshed with all ToRs. Traffic
between NICs of different rails, and between segments, goes over them.
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


@fabric_kind("rail-optimized")
def rail_optimized(
    *,
    gpus_per_host: GpusPerHost = 8,
    nics_per_host: Annotated[int, Count("NICs of a host: its rails, each with a ToR of its own per segment")] = 8,
    port_rate: PortRate = 400e9,
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
    aggregations: Annotated[int, Count("number of aggregation switches")],
) -> Fabric:
    """Return a rail-optimised fabric of ``segments`` x ``nics_per_host`` ToRs; hosts go to segments in order.

    Rail k of segment s is on ToR ``s * nics_per_host + k``. Raises ``ValueError`` naming the parameter that makes the
    fabric impossible.
    """
    rates = (port_rate, pcie_rate, nvlink_rate)
    shape = HostShape(hosts, gpus_per_host, nics_per_host, 1, *rates, intra_host, pcie_queues)
    layout = Segments(shape, segments, rails=nics_per_host, hosts_per_segment=hosts_per_segment)
    return layout.build("rail-optimized", aggregations, fabric_rate, parallel_links, bonded)
