from __future__ import annotations

from collections.abc import Callable

import pytest

from topologies.clos import clos, clos3, clos96
from topologies.double_sided import double_sided
from topologies.fabric import Fabric
from topologies.generators.dcn_plus import dcn_plus
from topologies.generators.hpn import hpn
from topologies.generators.rail_optimized import rail_optimized
from workloads.job import Flow, Job, Phase, Transfer

RingMaker = Callable[..., Job]


def small() -> Fabric:
    return clos(hosts=4, gpus_per_host=2, nics_per_host=1, tors=2, aggregations=2, port_rate=100e9, fabric_rate=100e9)


RAILED: dict[str, int] = {"hosts": 8, "gpus_per_host": 2, "nics_per_host": 2}
"""Two segments of four hosts with two rails."""

FABRICS: dict[str, Callable[[], Fabric]] = {
    "small": small,
    "clos96": clos96,
    "clos96-ports": lambda: clos96(bonded=False),
    "clos3": lambda: clos3(
        pods=2,
        hosts=8,
        gpus_per_host=2,
        nics_per_host=1,
        tors_per_pod=2,
        aggregations_per_pod=2,
        cores=4,
        port_rate=100e9,
        fabric_rate=100e9,
    ),
    "double-sided": lambda: double_sided(hosts=6, nics_per_host=1, tors=4, aggregations=3, cores=2),
    "rail-optimized": lambda: rail_optimized(segments=2, aggregations=2, **RAILED),
    "hpn": lambda: hpn(segments=2, aggregations=2, planes=1, **RAILED),
    "hpn-planes": lambda: hpn(segments=2, aggregations=4, **RAILED),
    "dcn+": lambda: dcn_plus(segments=2, aggregations=2, **RAILED),
    "dcn+-dual": lambda: dcn_plus(segments=2, aggregations=2, tors_per_segment=2, **RAILED),
}


def ring(
    name: str,
    fabric: Fabric,
    hosts: list[int],
    *,
    size: float = 1e9,
    compute_s: float = 1.0,
    overlap: float = 0.0,
    flops: float = 1e15,
    first_port: int = 20000,
) -> Job:
    """A job on whole hosts: on every port of every NIC a flow to the same port of the next host."""
    ports = {f"h{host}": [p for nic in fabric.hosts[f"h{host}"].nics for p in fabric.nics[nic].ports] for host in hosts}
    names = list(ports)
    flows: list[Flow] = []
    for index, host in enumerate(names):
        following = names[(index + 1) % len(names)]
        for rail, (source, target) in enumerate(zip(ports[host], ports[following], strict=True)):
            number = first_port + len(flows)
            flows.append(Flow(f"{name}/{rail}/{index}", name, source, target, size, number, 5000))
    transfers = tuple(Transfer(flow.id, flow.bytes) for flow in flows)
    gpus = tuple(gpu for host in names for gpu in fabric.hosts[host].gpus)
    return Job(name, "test", gpus, (Phase(compute_s, overlap, "allreduce", transfers),), tuple(flows), flops, 10)


def mix(fabric: Fabric) -> list[Job]:
    """Two or three ring jobs that fill the fabric with every ring crossing ToRs."""
    count = len(fabric.hosts)
    shares = [list(range(start, count, 2)) for start in range(2)]
    return [
        ring(f"job{index}", fabric, hosts, size=1e9 + index, flops=1e15 * (2 - index), first_port=20000 + 1000 * index)
        for index, hosts in enumerate(shares)
    ]


@pytest.fixture(params=list(FABRICS))
def any_fabric(request: pytest.FixtureRequest) -> Fabric:
    """Every kind of fabric, small enough for a unit test."""
    return FABRICS[request.param]()


@pytest.fixture
def small_fabric() -> Fabric:
    """Four hosts, two ToRs, two aggregation switches."""
    return small()


@pytest.fixture
def clos96_fabric() -> Fabric:
    """The Crux testbed, bonded."""
    return clos96()


@pytest.fixture
def make_ring() -> RingMaker:
    """Builds ring jobs."""
    return ring


@pytest.fixture
def make_mix() -> Callable[[Fabric], list[Job]]:
    """Builds jobs that fill a fabric."""
    return mix
