"""DCN+: data-centre fabrics without rails, where all NICs of a host connect to the same ToR or the same two ToRs.

The baseline of Alibaba HPN (Qian et al., SIGCOMM'24) and a template of SimAI (Wang et al., NSDI'25), with one ToR per
segment or, as ``tors_per_segment: 2``, two ToRs and NICs of two ports, one to each. Aggregation switches are fully
meshed with all ToRs. Here is one pod; cores between pods are left out.
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
    NicsPerHost,
    NvlinkRate,
    ParallelLinks,
    PcieRate,
    PcieToNics,
    PortRate,
    fabric_kind,
)


@fabric_kind("dcn+")
def dcn_plus(
    *,
    gpus_per_host: GpusPerHost = 8,
    nics_per_host: NicsPerHost = 8,
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
    tors_per_segment: Annotated[int, Count("1: one ToR and NICs of one port; 2: two ToRs, a port to each")] = 1,
    aggregations: Annotated[int, Count("number of aggregation switches")],
) -> Fabric:
    """Return a pod of ``segments`` x ``tors_per_segment`` ToRs; hosts go to segments in order.

    ``port_rate`` is that of one port: NICs of two ports have twice of it. Raises ``ValueError`` naming the parameter
    that makes the fabric impossible.
    """
    if tors_per_segment not in (1, 2):
        raise ValueError(f"tors_per_segment must be 1 or 2, not {tors_per_segment}")
    rates = (port_rate, pcie_rate, nvlink_rate)
    shape = HostShape(hosts, gpus_per_host, nics_per_host, tors_per_segment, *rates, intra_host, pcie_queues)
    layout = Segments(shape, segments, hosts_per_segment=hosts_per_segment)
    return layout.build("dcn+", aggregations, fabric_rate, parallel_links, bonded)
