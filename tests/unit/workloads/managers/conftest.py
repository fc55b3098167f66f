"""What tests of cluster managers share."""

from __future__ import annotations

from topologies.clos import clos
from topologies.fabric import Fabric


def cluster(hosts: int, gpus_per_host: int) -> Fabric:
    """Hosts under one ToR."""
    return clos(
        hosts=hosts,
        gpus_per_host=gpus_per_host,
        nics_per_host=1,
        tors=1,
        aggregations=1,
        port_rate=1e9,
        fabric_rate=1e9,
    )
