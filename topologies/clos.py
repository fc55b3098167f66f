"""Clos fabrics of two and three layers, and the testbed of the Crux paper (section 6.1, figure 18).

Hosts go to ToRs in order: with two hosts per ToR, h0 and h1 connect to tor0, h2 and h3 to tor1.
Adjacent layers are fully meshed (in three layers: ToRs and aggregation switches within a pod,
aggregation switches of all pods with all cores). Rates are bit/s of payload per direction.
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
    PortsPerNic,
    fabric_kind,
)


@fabric_kind("clos")
def clos(
    *,
    gpus_per_host: GpusPerHost,
    nics_per_host: NicsPerHost,
    ports_per_nic: PortsPerNic = 1,
    port_rate: PortRate,
    fabric_rate: FabricRate,
    parallel_links: ParallelLinks = 1,
    bonded: Bonded = False,
    pcie_rate: PcieRate = PCIE_RATE,
    nvlink_rate: NvlinkRate = NVLINK_RATE,
    intra_host: IntraHostTraffic = "instant",
    pcie_queues: PcieToNics = "ideal",
    hosts: Annotated[int, Count("number of hosts")],
    tors: Annotated[int, Count("number of ToR switches")],
    aggregations: Annotated[int, Count("number of aggregation switches")],
) -> Fabric:
    """Return a two-layer Clos: ``parallel_links`` cables of ``fabric_rate`` between each ToR and aggregation switch.

    ``bonded`` makes the ports of a NIC one port, and parallel cables one cable, of the summed rate.
    Raises ``ValueError`` naming the parameter that makes the fabric impossible.
    """
    require_counts(tors=tors, aggregations=aggregations, parallel_links=parallel_links)
    require_rates(fabric_rate=fabric_rate)
    rates = (port_rate, pcie_rate, nvlink_rate)
    given = HostShape(hosts, gpus_per_host, nics_per_host, ports_per_nic, *rates, intra_host, pcie_queues)
    shape = _shape(given, bonded)
    require_multiple("hosts", hosts, tors, "ToRs")
    builder = FabricBuilder()
    tor_names = builder.add_switches("tor", tors)
    aggregation_names = builder.add_switches("agg", aggregations)
    _attach(builder, shape, tor_names)
    cables, rate = (1, fabric_rate * parallel_links) if bonded else (parallel_links, fabric_rate)
    builder.mesh(tor_names, aggregation_names, "tor-agg", rate, cables)
    size = f"{tors} ToRs, {aggregations} aggregation"
    return builder.build("clos", f"{hosts} hosts x {gpus_per_host} GPUs, {size}", shape)


@fabric_kind("clos3")
def clos3(
    *,
    gpus_per_host: GpusPerHost,
    nics_per_host: NicsPerHost,
    ports_per_nic: PortsPerNic = 1,
    port_rate: PortRate,
    fabric_rate: FabricRate,
    parallel_links: ParallelLinks = 1,
    bonded: Bonded = False,
    pcie_rate: PcieRate = PCIE_RATE,
    nvlink_rate: NvlinkRate = NVLINK_RATE,
    intra_host: IntraHostTraffic = "instant",
    pcie_queues: PcieToNics = "ideal",
    pods: Annotated[int, Count("number of pods")],
    hosts: Annotated[int, Count("number of hosts in all pods together")],
    tors_per_pod: Annotated[int, Count("ToR switches of a pod")],
    aggregations_per_pod: Annotated[int, Count("aggregation switches of a pod")],
    cores: Annotated[int, Count("number of core switches")],
    core_rate: CoreRate = None,
) -> Fabric:
    """Return a three-layer Clos of ``pods`` pods; ``hosts`` counts all pods together.

    ``fabric_rate`` is that of a ToR-aggregation cable, ``core_rate`` (default: the same) that of an
    aggregation-core cable; ``parallel_links`` and ``bonded`` hold for both.
    Raises ``ValueError`` naming the parameter that makes the fabric impossible.
    """
    require_counts(pods=pods, tors_per_pod=tors_per_pod, aggregations_per_pod=aggregations_per_pod, cores=cores)
    require_counts(parallel_links=parallel_links)
    above = fabric_rate if core_rate is None else core_rate
    require_rates(fabric_rate=fabric_rate, core_rate=above)
    rates = (port_rate, pcie_rate, nvlink_rate)
    given = HostShape(hosts, gpus_per_host, nics_per_host, ports_per_nic, *rates, intra_host, pcie_queues)
    shape = _shape(given, bonded)
    require_multiple("hosts", hosts, pods * tors_per_pod, "ToRs of all pods")
    builder = FabricBuilder()
    tor_names = builder.add_switches("tor", pods * tors_per_pod)
    aggregation_names = builder.add_switches("agg", pods * aggregations_per_pod)
    core_names = builder.add_switches("core", cores)
    _attach(builder, shape, tor_names)
    cables, factor = (1, parallel_links) if bonded else (parallel_links, 1)
    for pod in range(pods):
        pod_tors = tor_names[pod * tors_per_pod : (pod + 1) * tors_per_pod]
        pod_aggregations = aggregation_names[pod * aggregations_per_pod : (pod + 1) * aggregations_per_pod]
        builder.mesh(pod_tors, pod_aggregations, "tor-agg", fabric_rate * factor, cables)
    builder.mesh(aggregation_names, core_names, "agg-core", above * factor, cables)
    size = f"{len(tor_names)} ToRs, {len(aggregation_names)} aggregation, {cores} core"
    return builder.build("clos3", f"{hosts} hosts x {gpus_per_host} GPUs in {pods} pods, {size}", shape)


def clos96(bonded: bool = True) -> Fabric:
    """Return the Crux testbed: 96 GPUs, 12 hosts of 4 NICs x 2 x 100 Gb/s, 6 ToRs, 8 aggregation switches, 1:1."""
    return clos(
        hosts=12,
        gpus_per_host=8,
        nics_per_host=4,
        ports_per_nic=2,
        tors=6,
        aggregations=8,
        port_rate=100e9,
        fabric_rate=100e9,
        parallel_links=2,
        bonded=bonded,
    )


def _shape(shape: HostShape, bonded: bool) -> HostShape:
    if not bonded:
        return shape
    return replace(shape, ports_per_nic=1, port_rate=shape.port_rate * shape.ports_per_nic)


def _attach(builder: FabricBuilder, shape: HostShape, tors: tuple[str, ...]) -> None:
    per_tor = shape.hosts // len(tors)
    for index in range(shape.hosts):
        builder.add_host(shape, index, (tors[index // per_tor],) * shape.ports_per_nic)
