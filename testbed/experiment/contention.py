"""Whether communication schedulers can make any difference to jobs on a fabric. Pure.

They cannot where no two flows can meet on a link that leaves a choice, or where all communication ends within the
compute that it overlaps even in the worst case. The bounds here are on the safe side: where the answer is that there
is nothing to schedule, there is nothing; where it is not, schedulers may still do the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, inf
from typing import Final

from topologies.fabric import Fabric
from workloads.job import Job, Phase

ADVICE: Final = "every scheduler will do the same; raise 'communication' or take a crux- model"
HIDDEN: Final = f"nothing to schedule: communication is hidden behind compute: {ADVICE}"
NO_CONTENTION: Final = (
    "nothing to schedule: no link can be contended: every scheduler will do the same; "
    "place jobs so that they share links"
)
JITTERS: Final = 3.0
"""Standard deviations by which a compute time may be shorter than its mean."""

MARGIN_S: Final = 1e-3
"""Communication is hidden only with so much to spare: for the latency of links, step by step, and for packets that fill
a path, which bytes over rates do not count."""

Links = Mapping[str, frozenset[str]]
"""Flow id -> the links of all its candidate paths."""


def nothing_to_schedule(jobs: Sequence[Job], fabric: Fabric) -> str:
    """Return why every scheduler will do the same for ``jobs`` on ``fabric``, one line; empty if they can differ.

    Empty, too, without jobs: those of a cluster manager come later.
    """
    if not jobs:
        return ""
    links = {flow.id: _possible_links(flow.source, flow.target, fabric) for job in jobs for flow in job.flows}
    groups = _groups(jobs, links)
    meeting = [group for group in groups if len(group) > 1 or _may_slow_itself(group[0], links, fabric)]
    if not meeting:
        return NO_CONTENTION
    return HIDDEN if all(_is_hidden(group, links, fabric) for group in meeting) else ""


def _possible_links(source: str, target: str, fabric: Fabric) -> frozenset[str]:
    return frozenset(link for path in fabric.candidate_paths(source, target) for link in path)


def _groups(jobs: Sequence[Job], links: Links) -> list[list[Job]]:
    """The jobs that send, grouped by links that they may share, directly or through others, and by shared GPUs."""
    groups: list[tuple[set[str], list[Job]]] = []
    for job in jobs:
        used = set(job.inside).union(job.gpus, *(links[flow.id] for flow in job.flows))
        joined = [group for group in groups if group[0] & used]
        groups = [group for group in groups if group not in joined]
        if job.flows or job.inside:
            groups.append((used.union(*(each[0] for each in joined)), [*(j for each in joined for j in each[1]), job]))
        else:
            groups += joined
    return [members for _, members in groups]


def _may_slow_itself(job: Job, links: Links, fabric: Fabric) -> bool:
    """Whether two phases of ``job`` may send at once, or two of its flows meet on a link where one has a choice."""
    if any(phase.background for phase in job.phases):
        return True
    users: dict[str, int] = {}
    for flow in job.flows:
        for link in links[flow.id]:
            users[link] = users.get(link, 0) + 1
    return any(
        users[link] > 1 and len(fabric.candidate_paths(flow.source, flow.target)) > 1
        for flow in job.flows
        for link in links[flow.id]
        if fabric.links[link].kind != "host-tor"
    )


def _is_hidden(group: Sequence[Job], links: Links, fabric: Fabric) -> bool:
    """Whether each phase of each job ends within its compute even if the jobs of ``group`` send one after the other."""
    bursts = {job.name: _worst_s(job.phases, links, fabric) for job in group}
    return all(
        _time_with(others, _worst_s(sent, links, fabric)) + MARGIN_S <= window_s
        for job in group
        for others in [[(bursts[other.name], _shortest_s(other)) for other in group if other is not job]]
        for sent, window_s in _windows(job)
    )


def _windows(job: Job) -> Iterable[tuple[tuple[Phase, ...], float]]:
    """What has to be sent within which time (s), so that no GPU waits; background phases also await later ones."""
    for place, phase in enumerate(job.phases):
        if phase.communicates:
            later = job.phases[place + 1 :] if phase.background else ()
            hidden_s = phase.overlap * phase.compute_s + sum(each.compute_s for each in later)
            yield (phase, *later), hidden_s * _shrunk(job)


def _shortest_s(job: Job) -> float:
    """The shortest time between two iterations of ``job``: no iteration is shorter than its compute."""
    return job.compute_s * _shrunk(job)


def _shrunk(job: Job) -> float:
    return max(0.0, 1 - JITTERS * job.jitter)


def _worst_s(phases: Iterable[Phase], links: Links, fabric: Fabric) -> float:
    """Seconds to send all of ``phases`` if every flow takes the link that most flows can take."""
    load: dict[str, float] = {}
    phases = list(phases)
    times = Counter(id(phase.transfers) for phase in phases)  # microbatches share their transfers
    for transfers in {id(phase.transfers): phase.transfers for phase in phases}.values():
        for transfer in transfers:
            for link in links[transfer.flow]:
                load[link] = load.get(link, 0.0) + times[id(transfers)] * transfer.bytes
    for phase in phases:
        for link, size in phase.inside:
            load[link] = load.get(link, 0.0) + size
    return max((8 * size / fabric.links[link].capacity for link, size in load.items()), default=0.0)


def _time_with(others: Sequence[tuple[float, float]], own_s: float) -> float:
    """Seconds until ``own_s`` of sending is through if all of ``others`` (burst s, period s) always go first.

    The response time of the lowest priority, as in real-time systems: a burst may have begun before. Infinite where
    the others alone fill the time.
    """
    if any(burst_s > 0 and period_s <= 0 for burst_s, period_s in others):
        return inf
    if sum(burst_s / period_s for burst_s, period_s in others if burst_s > 0) >= 1:
        return inf
    time_s, before_s = own_s, -1.0
    while time_s > before_s:
        before_s = time_s
        time_s = own_s + sum((ceil(time_s / period_s) + 1) * burst_s for burst_s, period_s in others if burst_s > 0)
    return time_s
