"""The double-sided fabric of Crux section 6.1: dual-homed hosts under three layers of switches.

The paper gives the counts (6 ToRs, 12 aggregation, 32 core switches, eight links per host to two
ToRs) and no wiring. Here ToRs come in pairs (tor0 and tor1, tor2 and tor3, ...), half the ports
of every NIC go to each ToR of the host's pair, and adjacent layers are fully meshed. With that
mesh every shortest path between ToRs turns at an aggregation switch, and cores carry no job.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from topologies.fabric import Fabric
from topologies.hosts import (
    NVLINK_RATE,
    PCIE_RATE,
    FabricBuilder,
    HostShape,
    require_counts,
    require_multiple,
    require_rates,
)
from topologies.parameters import (
    Bonded,
    CoreRate,
    Count,
    FabricRate,
    GpusPerHost,
    IntraHostTraffic,
    NicsPerHost,
    NvlinkRate,
    ParallelLinks,
    PcieRate,
    PcieToNics,
    PortRate,
    fabric_kind,
)


@fabric_kind("double-sided")
def double_sided(
    *,
    gpus_per_host: GpusPerHost = 8,
    nics_per_host: NicsPerHost = 4,
    ports_per_nic: Annotated[int, Count("ports of a NIC, half of them to each ToR of the pair")] = 2,
    port_rate: PortRate = 100e9,
    fabric_rate: FabricRate = 100e9,
    parallel_links: ParallelLinks = 1,
    bonded: Bonded = False,
    pcie_rate: PcieRate = PCIE_RATE,
    nvlink_rate: NvlinkRate = NVLINK_RATE,
    intra_host: IntraHostTraffic = "instant",
    pcie_queues: PcieToNics = "ideal",
    hosts: Annotated[int, Count("number of hosts")] = 252,
    tors: Annotated[int, Count("number of ToR switches, an even number")] = 6,
    aggregations: Annotated[int, Count("number of aggregation switches")] = 12,
    cores: Annotated[int, Count("number of core switches")] = 32,
    core_rate: CoreRate = None,
) -> Fabric:
    """Return a double-sided fabric; hosts go to ToR pairs in order.

    ``bonded`` makes the ports of a NIC that go to one ToR one port, and parallel cables one cable,
    of the summed rate. Raises ``ValueError`` naming the parameter that makes the fabric impossible.
    """
    require_counts(tors=tors, aggregations=aggregations, cores=cores, parallel_links=parallel_links)
    above = fabric_rate if core_rate is None else core_rate
    require_rates(fabric_rate=fabric_rate, core_rate=above)
    rates = (port_rate, pcie_rate, nvlink_rate)
    given = HostShape(hosts, gpus_per_host, nics_per_host, ports_per_nic, *rates, intra_host, pcie_queues)
    require_multiple("ports_per_nic", ports_per_nic, 2, "ToRs of a pair")
    require_multiple("tors", tors, 2, "sides of a pair")
    require_multiple("hosts", hosts, tors // 2, "ToR pairs")
    shape = _bond(given) if bonded else given
    builder = FabricBuilder()
    tor_names = builder.add_switches("tor", tors)
    aggregation_names = builder.add_switches("agg", aggregations)
    core_names = builder.add_switches("core", cores)
    _attach(builder, shape, tor_names)
    cables, factor = (1, parallel_links) if bonded else (parallel_links, 1)
    builder.mesh(tor_names, aggregation_names, "tor-agg", fabric_rate * factor, cables)
    builder.mesh(aggregation_names, core_names, "agg-core", above * factor, cables)
    size = f"{tors} ToRs in pairs, {aggregations} aggregation, {cores} core"
    return builder.build("double-sided", f"{hosts} dual-homed hosts x {gpus_per_host} GPUs, {size}", shape)


def _bond(shape: HostShape) -> HostShape:
    """One port to each ToR of the pair: cables to different switches cannot be one link."""
    return replace(shape, ports_per_nic=2, port_rate=shape.port_rate * shape.ports_per_nic / 2)


def _attach(builder: FabricBuilder, shape: HostShape, tors: tuple[str, ...]) -> None:
    per_pair, half = shape.hosts // (len(tors) // 2), shape.ports_per_nic // 2
    for index in range(shape.hosts):
        pair = 2 * (index // per_pair)
        builder.add_host(shape, index, (tors[pair],) * half + (tors[pair + 1],) * half)
