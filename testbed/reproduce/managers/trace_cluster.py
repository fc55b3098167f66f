"""The cluster on which a trace is played without a network: hosts of 8 GPUs, and what does not fit on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from testbed.errors import BadInputError
from topologies.clos import clos
from topologies.fabric import Fabric
from workloads.traces.trace import TraceJob

GPUS_PER_HOST: Final = 8


def cluster_of(hosts: int, tors: int) -> Fabric:
    """Return ``hosts`` hosts, as many under each ToR; rates do not matter. ``BadInputError`` if there are too many."""
    try:
        return clos(
            hosts=hosts,
            gpus_per_host=GPUS_PER_HOST,
            nics_per_host=4,
            tors=tors,
            aggregations=1,
            port_rate=100e9,
            fabric_rate=100e9,
        )
    except ValueError as error:
        raise BadInputError(f"the jobs of this trace would need a cluster of {hosts} hosts: {error}") from error


def too_large(jobs: Sequence[TraceJob], gpus: int) -> str:
    """Return a note on the jobs that ask for more than all ``gpus`` of a cluster, which are not played.

    Empty if there are none; ``BadInputError`` if there are no others.
    """
    count = sum(job.gpus > gpus for job in jobs)
    if count == len(jobs):
        raise BadInputError(f"every job of this trace asks for more GPUs than its cluster here has, {gpus}")
    return f"left out: {count} of {len(jobs)} jobs, which ask for more than {gpus} GPUs" if count else ""
