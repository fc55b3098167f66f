"""GPU intensity: how much computation waits behind a second of a job's communication (Crux section 3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from controller.decision import Measured
from topologies.fabric import Fabric, Path
from workloads.analysis import isolated
from workloads.job import Job
from workloads.staged_analysis import played


@dataclass(frozen=True, slots=True)
class Profile:
    """A job alone on the fabric, as a scheduler sees it.

    ``communication_s`` is t_j: the largest bytes per iteration / capacity over its links.
    ``lead_s`` is the compute that must be done before communication may start, if an iteration has one
    stretch of each (:func:`lead_of`). ``traffic`` is in
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
    return _profile(
        job,
        alone.communication_s,
        alone.iteration_s,
        sum(flow.bytes for flow in job.flows),
        compute_before_communication(job),
    )


def profile_from_times(
    job: Job, communication_s: float, phases_s: Sequence[float], sent_bytes: float, lead_s: float, fabric: Fabric
) -> Profile:
    """Return the declared profile of ``job`` from times already known, as :func:`profile` would.

    ``communication_s`` is t_j, ``phases_s`` the communication of each phase alone, ``sent_bytes`` all
    bytes of an iteration, ``lead_s`` what :func:`compute_before_communication` gives.
    """
    if job.staged:
        seconds = {id(phase): spent for phase, spent in zip(job.phases, phases_s, strict=True)}
        iteration_s = played(job, fabric, lambda phase: seconds[id(phase)]).seconds
        return _profile(job, communication_s, iteration_s, sent_bytes, lead_s)
    iteration_s = sum(
        max(phase.compute_s, (1 - phase.overlap) * phase.compute_s + spent) if phase.communicates else phase.compute_s
        for phase, spent in zip(job.phases, phases_s, strict=True)
    )
    return _profile(job, communication_s, iteration_s, sent_bytes, lead_s)


def measured_profile(job: Job, measured: Measured, sent_bytes: float) -> Profile:
    """Return the profile of ``job`` with W_j, t_j and the iteration as the workers measured them (Crux section 5).

    W_j is busy time times the declared FLOP/s of a busy GPU; over that rate it is the compute: busy seconds of a GPU.
    The lead is the latest that the measured iteration allows: its length less its communication.
    """
    transfer_s, iteration_s = measured.communication_s, measured.iteration_s
    busy_s = measured.flops / job.flops * job.compute_s if job.flops > 0 else job.compute_s
    compute_s = min(busy_s, iteration_s)
    return Profile(
        job=job.name,
        intensity=measured.flops / transfer_s if transfer_s > 0 else 0.0,
        communication_s=transfer_s,
        compute_s=compute_s,
        lead_s=min(compute_s, max(0.0, iteration_s - transfer_s)),
        iteration_s=iteration_s,
        traffic=sent_bytes / iteration_s if iteration_s > 0 else 0.0,
    )


def _profile(job: Job, transfer_s: float, iteration_s: float, sent_bytes: float, lead_s: float) -> Profile:
    return Profile(
        job=job.name,
        intensity=job.flops / transfer_s if transfer_s > 0 else 0.0,
        communication_s=transfer_s,
        compute_s=job.compute_s,
        lead_s=lead_of(job, lead_s, transfer_s, iteration_s),
        iteration_s=iteration_s,
        traffic=sent_bytes / iteration_s if iteration_s > 0 else 0.0,
    )


def lead_of(job: Job, lead_s: float, communication_s: float, iteration_s: float) -> float:
    """Return the lead with which one stretch of compute and one of communication take ``iteration_s``, at most all.

    ``lead_s`` is what :func:`compute_before_communication` gives. It is right for one phase. With several, the compute
    of one phase hides no communication of the others: the iteration is longer than that lead says, and the lead is the
    iteration less its communication, as it is where both are measured.
    """
    if len(job.phases) < 2 or max(job.compute_s, lead_s + communication_s) >= iteration_s:
        return lead_s
    return min(job.compute_s, iteration_s - communication_s)


def compute_before_communication(job: Job) -> float:
    """Compute in s that cannot run beside communication: all, less the overlapped share of phases that send."""
    hidden = sum(phase.overlap * job.share_computing(phase) for phase in job.phases if phase.communicates)
    return max(0.0, job.compute_s - hidden)


def links_used(job: Job, fabric: Fabric, paths: Mapping[str, Path]) -> frozenset[str]:
    """Return the directed links that ``job`` sends over: those of its paths, and PCIe switch to NIC at both ends.

    Others inside hosts that GPUs share are among them where the fabric counts those.
    """
    own = set(job.gpus)
    used = {name for name in job.inside if not own & {fabric.links[name].source, fabric.links[name].target}}
    for flow in job.flows:
        if flow.bytes <= 0:
            continue
        used.update(paths[flow.id])
        source, target = (fabric.nics[fabric.ports[port].nic] for port in (flow.source, flow.target))
        used.add(f"{source.pcie_switch}->{source.name}")
        used.add(f"{target.name}->{target.pcie_switch}")
    return frozenset(used)


def shared_nic_links(jobs: Iterable[Job], fabric: Fabric) -> tuple[str, ...]:
    """Return the links from PCIe switch to NIC that several of ``jobs`` send over, in the order of the fabric."""
    users: dict[str, set[str]] = {}
    for job in jobs:
        for flow in job.flows:
            if flow.bytes > 0:
                users.setdefault(fabric.ports[flow.source].nic, set()).add(job.name)
    return tuple(fabric.nic_links[nic][0].name for nic in fabric.nics if len(users.get(nic, ())) > 1)
