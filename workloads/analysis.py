"""What a job does alone on the fabric, in closed form: t_j, its iteration, its utilisation.

Alone means: compute, and the communication that outlasts it when every phase moves its bytes
at the rate of its most loaded link. No jitter, no stragglers; latency and the fill of
store-and-forward pipelines only as ``fill_s`` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from topologies.fabric import Fabric, Path
from workloads.job import Job, Phase
from workloads.phases import once_per_transfers
from workloads.staged_analysis import played


@dataclass(frozen=True)
class Isolated:
    """A job alone; per iteration.

    ``communication_s`` is t_j of Crux section 3.2: the largest of bytes / capacity over the links,
    all its flows added up, links inside hosts included where the fabric counts them. ``exposed_s`` is
    the part of the iteration in which its GPUs wait. ``bytes_by_link``: link name -> bytes.
    """

    iteration_s: float
    compute_s: float
    communication_s: float
    exposed_s: float
    utilization: float
    bytes_by_link: Mapping[str, float]


def isolated(job: Job, fabric: Fabric, paths: Mapping[str, Path] | None = None, fill_s: float = 0.0) -> Isolated:
    """Return what ``job`` does alone on ``fabric``.

    Without ``paths`` (flow id -> links) only host links count, as if no two of its flows shared a link
    inside the fabric; with them every link of the paths does, so flows of the job that collide slow it.
    ``fill_s`` is added to every phase that sends over the network. Raises ``KeyError`` for a flow without a path.
    """
    links = {flow.id: links_of(flow.source, flow.target, fabric, flow.id, paths) for flow in job.flows}
    total = bytes_by_link(((flow.id, flow.bytes) for flow in job.flows), links) | job.inside
    iteration = _iteration(job, fabric, links, fill_s)
    compute = job.compute_s
    return Isolated(
        iteration_s=iteration,
        compute_s=compute,
        communication_s=bottleneck_time(total, fabric),
        exposed_s=iteration - compute,
        utilization=compute / iteration if iteration > 0 else 1.0,
        bytes_by_link=total,
    )


def _iteration(job: Job, fabric: Fabric, links: Mapping[str, Iterable[str]], fill_s: float) -> float:
    if not job.staged:
        return iteration_time(job.phases, fabric, links, fill_s)
    alone_s = played(job, fabric, _communication_times(fabric, links, fill_s)).seconds
    return alone_s if job.served is None else max(alone_s, job.served.interval_s)


def _communication_times(
    fabric: Fabric, links: Mapping[str, Iterable[str]], fill_s: float = 0.0
) -> Callable[[Phase], float]:
    """Phase -> seconds that its communication takes, 0 if none."""
    network_s = once_per_transfers(
        lambda transfers: bottleneck_time(bytes_by_link(((each.flow, each.bytes) for each in transfers), links), fabric)
    )

    def takes(phase: Phase) -> float:
        inside_s = bottleneck_time(dict(phase.inside), fabric)
        return max(network_s(phase), inside_s) + (fill_s if phase.transfers else 0.0)

    return takes


def communication_begins(job: Job, fabric: Fabric, links: Mapping[str, Iterable[str]]) -> tuple[list[float], float]:
    """By phase when its communication begins in an iteration of ``job`` alone, and how long that takes, in seconds."""
    if job.staged:
        found = played(job, fabric, _communication_times(fabric, links))
        return list(found.begins), found.seconds if job.served is None else max(found.seconds, job.served.interval_s)
    begins, now = [], 0.0
    for phase in job.phases:
        begins.append(now + (1 - phase.overlap) * phase.compute_s)
        now += phase_time(phase, fabric, links)
    return begins, now


def self_collision(job: Job, fabric: Fabric, paths: Mapping[str, Path]) -> float:
    """How many times as long an iteration takes because the job's own flows share links under ``paths``; 1 if none."""
    return isolated(job, fabric, paths).iteration_s / isolated(job, fabric).iteration_s


def links_of(source: str, target: str, fabric: Fabric, flow: str, paths: Mapping[str, Path] | None) -> tuple[str, ...]:
    """Links that count for a flow: its path, or where paths are open, the host links at its two ends."""
    if paths is not None:
        return paths[flow]
    return (fabric.uplink(source).name, fabric.uplink(target).reverse)


def bytes_by_link(sizes: Iterable[tuple[str, float]], links: Mapping[str, Iterable[str]]) -> dict[str, float]:
    """Return link -> bytes for (flow, bytes) pairs."""
    total: dict[str, float] = {}
    for flow, size in sizes:
        for link in links[flow]:
            total[link] = total.get(link, 0.0) + size
    return total


def bottleneck_time(load: Mapping[str, float], fabric: Fabric) -> float:
    """Seconds the most loaded link needs for link -> bytes; 0 for no load."""
    return max((8 * size / fabric.links[link].capacity for link, size in load.items()), default=0.0)


def iteration_time(
    phases: Sequence[Phase], fabric: Fabric, links: Mapping[str, Iterable[str]], fill_s: float = 0.0
) -> float:
    """Seconds of an iteration alone: its phases one after the other.

    Background communication ends no sooner than its links can have moved it and all that later phases send;
    exact where one link bounds both and is never idle.
    """
    now, ends = 0.0, [0.0]
    for place, phase in enumerate(phases):
        if phase.background and phase.communicates:
            moved = [phase, *phases[place + 1 :]]
            load = bytes_by_link(((move.flow, move.bytes) for each in moved for move in each.transfers), links)
            ends.append(now + (1 - phase.overlap) * phase.compute_s + communication_time(phase, load, fabric) + fill_s)
            now += phase.compute_s
        else:
            now += phase_time(phase, fabric, links, fill_s)
    return max(now, *ends)


def phase_time(phase: Phase, fabric: Fabric, links: Mapping[str, Iterable[str]], fill_s: float = 0.0) -> float:
    """Seconds from the start of a phase to its end: compute, or the communication that outlasts it."""
    if not phase.communicates:
        return phase.compute_s
    load = bytes_by_link(((transfer.flow, transfer.bytes) for transfer in phase.transfers), links)
    begin = (1 - phase.overlap) * phase.compute_s
    fill = fill_s if phase.transfers else 0.0
    return max(phase.compute_s, begin + communication_time(phase, load, fabric) + fill)


def communication_time(phase: Phase, load: Mapping[str, float], fabric: Fabric) -> float:
    """Seconds that the communication of ``phase`` takes with ``load`` (link -> bytes) in the network; 0 if none."""
    return max(bottleneck_time(load, fabric), bottleneck_time(dict(phase.inside), fabric))
