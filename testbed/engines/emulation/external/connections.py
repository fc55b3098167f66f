"""From the sockets of a real program to the flows of its job. Pure.

A TCP connection carries bytes both ways: it is two flows, each with the path and the level of its own direction, and
acknowledgements travel with the bytes of the opposite one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from testbed.engines.emulation.external.sock_diag import LISTEN, TIME_WAIT, TcpSocket
from topologies.addressing import address_of
from topologies.fabric import Fabric
from workloads.external import UNKNOWN_BYTES
from workloads.job import Flow, Job, Phase, Transfer

Ends = tuple[str, int, str, int]
"""Source port of the fabric and TCP port, target port of the fabric and TCP port."""

_OVER: Final = frozenset({LISTEN, TIME_WAIT})


def ports_of(job: Job, fabric: Fabric) -> dict[str, str]:
    """Return address -> port of the fabric, of all hosts of ``job``."""
    hosts = dict.fromkeys(fabric.host_of_gpu[gpu] for gpu in job.gpus)
    nics = [nic for host in hosts for nic in fabric.hosts[host].nics]
    return {address_of(fabric, port): port for nic in nics for port in fabric.nics[nic].ports}


def ends_of(found: TcpSocket, ports: Mapping[str, str]) -> Ends | None:
    """Return where what ``found`` sends comes from and goes to; None unless it joins two hosts of the job."""
    if found.state in _OVER or found.address not in ports or found.peer not in ports or found.peer == found.address:
        return None
    return ports[found.address], found.port, ports[found.peer], found.peer_port


def opposite(ends: Ends) -> Ends:
    """Return the other direction."""
    return ends[2], ends[3], ends[0], ends[1]


def flow_id(job: str, ends: Ends) -> str:
    """Return the id of the flow: ``mpi:tcp:h0n0p0>h1n0p0:61000-61002``."""
    return f"{job}:tcp:{ends[0]}>{ends[2]}:{ends[1]}-{ends[3]}"


def with_connections(job: Job, connections: Iterable[Ends], sizes: Mapping[Ends, float], declared: float | None) -> Job:
    """Return ``job`` with two flows for each of ``connections`` (either direction of each).

    ``sizes`` are the bytes per iteration that have been measured; without any, ``declared`` bytes of a host's share are
    divided evenly among what it sends.
    """
    both = sorted({each for ends in connections for each in (ends, opposite(ends))})
    senders: dict[str, int] = {}
    for source, *_ in both:
        senders[source] = senders.get(source, 0) + 1

    def size(ends: Ends) -> float:
        if sizes:
            return sizes.get(ends, 0.0)
        return UNKNOWN_BYTES if declared is None else declared / senders[ends[0]]

    flows = tuple(
        Flow(flow_id(job.name, ends), job.name, ends[0], ends[2], size(ends), ends[1], ends[3], two_way=True)
        for ends in both
    )
    first = job.phases[0]
    transfers = tuple(Transfer(flow.id, flow.bytes) for flow in flows)
    return replace(job, flows=flows, phases=(Phase(first.compute_s, first.overlap, first.collective, transfers),))


def declared_per_port(job: Job) -> float | None:
    """Return the bytes that a port sends per iteration by what the job says of itself; None where it says nothing."""
    if job.external is None or job.external.communication is None:
        return None
    sums: dict[str, float] = {}
    for flow in job.flows:
        sums[flow.source] = sums.get(flow.source, 0.0) + flow.bytes
    return max(sums.values(), default=None)
