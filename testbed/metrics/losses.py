"""Why the GPUs of a job are idle, in parts that add up to its idle time. Pure.

``alone``: what the job would lose with nothing beside it and each of its connections with the links between switches to
itself: communication that compute does not hide, jitter, stragglers, experts. ``own``: what collisions of its own
connections add on the paths that it had. ``failures``: what it lost while failures of the network or a host stopped
it. ``others``: the rest, which is due to other jobs. The first two come from
the job simulated by itself (:mod:`testbed.engines.flow.alone`), iteration by iteration with the same draws.

A job that shared no link and no GPU with another while it ran lost nothing to others: it *was* alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from testbed.metrics.job_metrics import JobMetrics
from testbed.metrics.outage_metrics import outages_in
from testbed.results.path_history import path_history
from testbed.results.record import AloneRow, RunRecord
from topologies.fabric import Fabric
from workloads.job import Job

PARTS: Final = ("alone", "own", "failures", "others")
_ROUNDING: Final = 1e-9
"""Share of its idle time below which a part is rounding."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Parts of the idle time of a job or a run: in GPU-seconds, and in points of GPU utilisation.

    The GPU-seconds add up to the idle time; the points to what utilisation lacks to 100 %, each being the difference in
    utilisation that its part makes after those before it.
    """

    alone_gpu_s: float
    own_gpu_s: float
    others_gpu_s: float
    alone_points: float
    own_points: float
    others_points: float
    failures_gpu_s: float = 0.0
    failures_points: float = 0.0


def losses_by_stint(
    record: RunRecord, jobs: Sequence[Job], metrics: Mapping[str, JobMetrics], fabric: Fabric
) -> dict[str, Loss]:
    """Name of a job (or of a stint of one) -> what it lost, for all ``jobs`` of which that is known."""
    alone: dict[str, dict[int, AloneRow]] = defaultdict(dict)
    for row in record.alone:
        alone[row.job][row.iteration] = row
    sharing = sharing_jobs(record, jobs, fabric)
    found = {
        job.name: loss_of(
            metrics[job.name],
            alone[job.name],
            by_itself=job.name not in sharing,
            stood_gpu_s=stood_gpu_s(record, job),
        )
        for job in jobs
        if job.external is None
    }
    return {name: loss for name, loss in found.items() if loss is not None}


def loss_of(
    metrics: JobMetrics, alone: Mapping[int, AloneRow], *, by_itself: bool, stood_gpu_s: float = 0.0
) -> Loss | None:
    """Return what a job lost; ``alone``: iteration -> the same one with nothing beside the job.

    ``stood_gpu_s``: GPU-seconds for which failures stopped it. None if no iteration counts, or one that does was not
    simulated.
    """
    if not metrics.counted or any(number not in alone for number in metrics.counted):
        return None
    idle = sum(metrics.idle_s.values())
    on_its_paths = sum(share * alone[number].idle_gpu_s for number, share in metrics.counted.items())
    without = sum(share * alone[number].without_collisions_gpu_s for number, share in metrics.counted.items())
    own = _unless_rounding(on_its_paths - without, idle)
    more = _unless_rounding(idle - on_its_paths, idle)
    failures = max(0.0, min(more, stood_gpu_s))
    others = 0.0 if by_itself else more - failures
    return split(metrics.busy_s, (idle - own - failures - others, own, failures, others))


def split(busy_s: float, idle_parts_s: tuple[float, float, float, float]) -> Loss:
    """Return the loss of GPUs that were busy for ``busy_s`` and idle for the sum of ``idle_parts_s``: :data:`PARTS`."""
    points, idle, before = [], 0.0, 1.0
    for part in idle_parts_s:
        idle += part
        after = busy_s / (busy_s + idle) if busy_s + idle > 0.0 else 1.0
        points.append(100 * (before - after))
        before = after
    seconds, shares = dict(zip(PARTS, idle_parts_s, strict=True)), dict(zip(PARTS, points, strict=True))
    return Loss(
        **{f"{part}_gpu_s": seconds[part] for part in PARTS}, **{f"{part}_points": shares[part] for part in PARTS}
    )


def merged(
    stints: Iterable[Loss], busy_s: float, more_idle_s: float, *, due_to_others: bool, stood_gpu_s: float = 0.0
) -> Loss:
    """Return the loss of a job with these ``stints``; ``more_idle_s`` it held GPUs and did not iterate.

    ``stood_gpu_s``: GPU-seconds for which failures stopped it, in its stints and between them.
    """
    losses = list(stints)
    alone, own, failures, others = (sum(getattr(loss, f"{part}_gpu_s") for loss in losses) for part in PARTS)
    stood = max(0.0, min(more_idle_s, stood_gpu_s - failures))
    failures, more_idle_s = failures + stood, more_idle_s - stood
    alone, others = alone + more_idle_s * (not due_to_others), others + more_idle_s * due_to_others
    return split(busy_s, (alone, own, failures, others))


def total_loss(
    jobs: Sequence[tuple[float, Loss | None]], utilization: float, allocated_s: float, shared_s: float, held_s: float
) -> Loss | None:
    """Return the loss of a run; ``jobs``: GPU-seconds that each was allocated, and its loss; None if one is unknown.

    Points are weighted by GPU time. ``shared_s`` of it is that of GPUs which several jobs hold at once: there a GPU
    that computes for one job is idle for another, and counts as such in GPU-seconds, but not in points: utilisation
    has the GPU once. ``held_s``: GPU time of jobs that waited for more.
    """
    known = [(weight, loss) for weight, loss in jobs if loss is not None]
    if allocated_s <= 0 or len(known) < len(jobs):
        return None
    weight_s = allocated_s + shared_s
    alone, own, failures = (
        sum(weight * getattr(loss, f"{part}_points") for weight, loss in known) / weight_s for part in PARTS[:-1]
    )
    idle = 100 * (1 - utilization)
    return Loss(
        alone_gpu_s=sum(loss.alone_gpu_s for _, loss in known),
        own_gpu_s=sum(loss.own_gpu_s for _, loss in known),
        others_gpu_s=sum(loss.others_gpu_s for _, loss in known) + held_s,
        alone_points=alone,
        own_points=own,
        others_points=_unless_rounding(idle - alone - own - failures, 100.0),
        failures_gpu_s=sum(loss.failures_gpu_s for _, loss in known),
        failures_points=failures,
    )


def stood_gpu_s(record: RunRecord, job: Job) -> float:
    """GPU-seconds for which failures stopped ``job`` in its window."""
    window = record.windows.get(job.name)
    if window is None:
        return 0.0
    spans = outages_in(record, job.name).spans
    inside = (max(0.0, min(end, window.end_s) - max(begin, window.start_s)) for begin, end in spans)
    return sum(inside) * len(job.gpus)


def sharing_jobs(record: RunRecord, jobs: Sequence[Job], fabric: Fabric) -> frozenset[str]:
    """Return the jobs that shared a link or a GPU with another one while both were there."""
    spans = _spans(record)
    users: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for job in jobs:
        if job.name in spans:
            for used in _used(job, record, fabric, spans[job.name]):
                users[used].append((*spans[job.name], job.name))
    found: set[str] = set()
    for held in users.values():
        found |= _at_once(held)
    return frozenset(found)


def _spans(record: RunRecord) -> dict[str, tuple[float, float]]:
    """Job -> from its first iteration to its last."""
    spans: dict[str, tuple[float, float]] = {}
    for row in record.iterations:
        begin, end = spans.get(row.job, (row.start_s, row.end_s))
        spans[row.job] = min(begin, row.start_s), max(end, row.end_s)
    return spans


def _used(job: Job, record: RunRecord, fabric: Fabric, span: tuple[float, float]) -> set[str]:
    """The GPUs of ``job`` and all links that its flows were led over, PCIe links to NICs where they have queues."""
    used = set(job.gpus)
    for each in path_history(job, record.decisions, span[0]):
        used.update(link for path in each.paths.values() for link in path)
    for flow in job.flows:
        for port, direction in ((flow.source, 0), (flow.target, 1)):
            nic = fabric.ports[port].nic
            if nic in fabric.shaped_nics:
                used.add(fabric.nic_links[nic][direction].name)
    return used


def _at_once(held: list[tuple[float, float, str]]) -> set[str]:
    """The jobs of which two are there at the same time."""
    found: set[str] = set()
    latest: tuple[float, str] | None = None
    for begin, end, name in sorted(held):
        if latest is not None and begin < latest[0]:
            found |= {name, latest[1]}
        if latest is None or end > latest[0]:
            latest = end, name
    return found


def _unless_rounding(part: float, whole: float) -> float:
    return 0.0 if abs(part) <= _ROUNDING * abs(whole) else part
