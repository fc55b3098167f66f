"""GPU intensity: how much computation waits behind a second of a job's communication (Crux section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from topologies.fabric import Fabric, Path
from workloads.analysis import isolated
from workloads.job import Job


@dataclass(frozen=True, slots=True)
class Profile:
    """A job alone on the fabric, as a scheduler sees it.

    ``communication_s`` is t_j: the largest bytes per iteration / capacity over its links.
    ``lead_s`` is the compute that must be done before communication may start. ``traffic`` is in
    bytes per second of isolated iteration, all flows added up. ``intensity`` is W_j / t_j in
    FLOP/s; 0 for a job that sends nothing.
    """

    job: str
    intensity: float
    communication_s: float
    compute_s: float
    lead_s: float
    iteration_s: float
    traffic: float

    @property
    def communicates(self) -> bool:
        """Whether the job sends at all."""
        return self.communication_s > 0


def profile(job: Job, fabric: Fabric, paths: Mapping[str, Path] | None = None) -> Profile:
    """Return the profile of ``job``: over its host links while ``paths`` is None, over the assigned links after.

    The profile is the declared one: from the job's phases and bytes, not from measurements.
    """
    alone = isolated(job, fabric, paths)
    transfer_s = alone.communication_s
    total = sum(flow.bytes for flow in job.flows)
    return Profile(
        job=job.name,
        intensity=job.flops / transfer_s if transfer_s > 0 else 0.0,
        communication_s=transfer_s,
        compute_s=job.compute_s,
        lead_s=_lead_s(job),
        iteration_s=alone.iteration_s,
        traffic=total / alone.iteration_s if alone.iteration_s > 0 else 0.0,
    )


def _lead_s(job: Job) -> float:
    """Compute that cannot run beside communication: all of it, less the overlapped share of phases that send."""
    hidden = sum(phase.overlap * phase.compute_s for phase in job.phases if phase.transfers)
    return max(0.0, job.compute_s - hidden)


def links_used(job: Job, fabric: Fabric, paths: Mapping[str, Path]) -> frozenset[str]:
    """Return the directed links that ``job`` sends over: those of its paths, and PCIe switch to NIC at both ends."""
    used: set[str] = set()
    for flow in job.flows:
        if flow.bytes <= 0:
            continue
        used.update(paths[flow.id])
        source, target = (fabric.nics[fabric.ports[port].nic] for port in (flow.source, flow.target))
        used.add(f"{source.pcie_switch}->{source.name}")
        used.add(f"{target.name}->{target.pcie_switch}")
    return frozenset(used)
