"""Fabric, Job and Decision to JSON and back: the format of the northbound interface.

The format is that of :mod:`topologies.dataclass_json`. Input must be consistent too: a reference to an
unknown name raises ``ValueError`` with the place, as a wrong type does.
"""

from __future__ import annotations

import json

from controller.decision import Decision
from topologies.dataclass_json import decode, encode
from topologies.fabric import Fabric
from workloads.job import Job

__all__ = [
    "decision_from_json",
    "decode",
    "encode",
    "fabric_from_json",
    "job_from_json",
    "to_json",
]


def to_json(value: Fabric | Job | Decision) -> str:
    """Return ``value`` as canonical JSON: keys sorted, no spaces, the same bytes for the same value."""
    return json.dumps(encode(value), sort_keys=True, separators=(",", ":"), allow_nan=False)


def fabric_from_json(data: object) -> Fabric:
    """Return the fabric of parsed JSON ``data``; reverse links, and what ports name, must exist."""
    fabric = decode(Fabric, data, "fabric")
    for link in fabric.links.values():
        if link.reverse not in fabric.links:
            raise ValueError(f"fabric.links.{link.name}: reverse '{link.reverse}' is no link")
    for port in fabric.ports.values():
        for kind, name, known in (
            ("host", port.host, fabric.hosts.keys()),
            ("nic", port.nic, fabric.nics.keys()),
            ("switch", port.switch, fabric.switches.keys()),
        ):
            if name not in known:
                raise ValueError(f"fabric.ports.{port.name}: {kind} '{name}' is not in the fabric")
    return fabric


def job_from_json(data: object) -> Job:
    """Return the job of parsed JSON ``data``; transfers must name flows of the job."""
    job = decode(Job, data, "job")
    for index, phase in enumerate(job.phases):
        for transfer in phase.transfers:
            for flow in (transfer.flow, transfer.after):
                if flow is not None and flow not in job.flow_by_id:
                    raise ValueError(f"job.phases[{index}]: transfer names unknown flow '{flow}'")
    return job


def decision_from_json(data: object) -> Decision:
    """Return the decision of parsed JSON ``data``."""
    return decode(Decision, data, "decision")
