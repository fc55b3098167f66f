"""What each worker receives: a job's part on one host, in emulated bytes. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Final, TypeAlias, TypeVar

from controller.decision import Decision
from testbed.errors import RunFailedError
from testbed.experiment.experiment import Experiment, Scale
from topologies.addressing import address_of
from topologies.fabric import Fabric, Link
from topologies.shaping import BURST_S, segment_size, tos_of_level
from workloads.analysis import bottleneck_time
from workloads.iteration.byte_marks import ByteMarks
from workloads.iteration.byte_windows import ByteWindows
from workloads.iteration.job_plan import (
    IncomingMessage,
    JobPlan,
    OutgoingMessage,
    PhasePlan,
    PlannedConnection,
    RequestPlan,
)
from workloads.iteration.pcie_semaphore import PciePlace
from workloads.iteration.time_shift import TimeShift
from workloads.job import Flow, Job, Phase
from workloads.serving.served import slot_of

T = TypeVar("T")
_ByHost: TypeAlias = defaultdict[str, list[T]]

MIN_WINDOW_PACKETS: Final = 8
CONTROLLED_PACKETS: Final = 128
"""More than congestion control lets a flow have in flight on links that carry some ten packets a round trip."""
MOST_PACKETS: Final = 128
"""In flight on a flow whose share of a link counts bytes: more than the emulated queues need, less than they hold."""
WINDOW_S: Final = 0.02
"""What a flow may have in flight: eight full packets, and on fast links as much as they send in this time, which
covers the path through the switches and back. Enough for the longest path, little to wait behind."""
INSIDE_PACKETS: Final = 2
"""More of them where the path leads through the queues of PCIe at both ends."""
SLICE_PACKETS: Final = 2
"""Rings forward in slices of this many full packets: what one acknowledgement covers."""


def emulated_size(scale: Scale, size: float) -> int:
    """Whole bytes, at least one, that stand for ``size`` bytes of the scenario."""
    return max(1, round(scale.size(size)))


def tos_of_flows(decision: Decision, flows: tuple[Flow, ...], levels: int) -> dict[str, int]:
    """Flow id -> ``IP_TOS`` that its packets carry under ``decision``."""
    return {flow.id: tos_of_level(decision.level_of(flow, levels - 1), levels) for flow in flows}


def hosts_of(job: Job, fabric: Fabric) -> tuple[str, ...]:
    """The hosts of ``job``, in the order of its GPUs."""
    return tuple(dict.fromkeys(fabric.host_of_gpu[gpu] for gpu in job.gpus))


def time_shift_of(decision: Decision, job: str, scale: Scale, anchor: float) -> TimeShift | None:
    """What keeps ``job`` at its shift, on the machine's clock from ``anchor``; None for a job that is not shifted."""
    shift, period = decision.shifts.get(job, 0.0), decision.periods.get(job, 0.0)
    if shift == 0.0 and period == 0.0:
        return None
    return TimeShift(anchor, shift * scale.time, period * scale.time)


def byte_marks_of(decision: Decision, flow: Flow, experiment: Experiment) -> ByteMarks | None:
    """``IP_TOS`` of ``flow`` by the bytes of its message, in emulated bytes; None where its level is fixed."""
    counted = decision.byte_levels_of(flow)
    if counted is None:
        return None
    if len(counted.thresholds) >= experiment.levels:
        raise ValueError(f"flow '{flow.id}' has {len(counted.thresholds)} thresholds for {experiment.levels} levels")
    marks = tuple(tos_of_level(level, experiment.levels) for level in range(len(counted.thresholds) + 1))
    thresholds = tuple(round(experiment.scale.size(threshold)) for threshold in counted.thresholds)
    return ByteMarks(counted.by == "left", thresholds, marks)


def byte_windows_of(decision: Decision, job: Job, experiment: Experiment) -> dict[str, ByteWindows]:
    """Flow -> its windows in emulated bytes, of whole packets, where its share of a link counts bytes.

    The smallest weight has the smallest window that keeps a link busy, others one in proportion.
    """
    if experiment.congestion is not None and any(decision.weights_of(flow) for flow in job.flows):
        what = f"transport {experiment.congestion.transport}"
        raise RunFailedError(f"the scheduler gives flows weights, which {what} does not have, expected window")
    packet = segment_size(experiment.scale.mtu)
    weights = {flow.id: decision.weights_of(flow) for flow in job.flows}
    periods: Counter[str] = Counter()
    for phase in job.phases:
        for transfer in phase.transfers:
            if weights[transfer.flow] is not None:
                periods[transfer.flow] += round(experiment.scale.size(transfer.bytes))
    return {
        flow: ByteWindows(periods[flow], tuple(packet * count for count in weighted_packets(weight.parts)))
        for flow, weight in weights.items()
        if weight is not None and periods[flow] > 0
    }


def weighted_packets(weights: Sequence[float]) -> list[int]:
    """Full packets in flight that stand for each of ``weights``, which are above 0."""
    return [min(MOST_PACKETS, round(MIN_WINDOW_PACKETS * weight / min(weights))) for weight in weights]


def pcie_turns_of(
    decision: Decision, jobs: Iterable[Job], fabric: Fabric, levels: int
) -> dict[str, dict[str, PciePlace]]:
    """Host -> flow -> (PCIe link, rank) of the flows of ``jobs`` that take turns on a link to a NIC of that host.

    All flows of a job have the job's own level for rank: a flow that waited for another of its job might wait for ever.
    """
    exclusive = set(decision.exclusive)
    found: dict[str, dict[str, PciePlace]] = {}
    for job in jobs:
        for flow in job.flows if exclusive else ():
            port = fabric.ports[flow.source]
            link = fabric.nic_links[port.nic][0].name
            if link in exclusive:
                found.setdefault(port.host, {})[flow.id] = link, decision.levels.get(job.name, levels - 1)
    return found


def with_port(flow: Flow, decision: Decision) -> Flow:
    """``flow`` with the source port that ``decision`` gives it, if any."""
    return replace(flow, source_port=decision.ports[flow.id]) if flow.id in decision.ports else flow


def job_plans(
    job: Job, experiment: Experiment, decision: Decision, *, steps: bool = False, first: int = 0
) -> dict[str, JobPlan]:
    """Host -> the plan that the worker of that host carries out.

    ``steps``: the worker reports when communication begins and ends. ``first``: number of its first iteration.
    """
    job = replace(job, flows=tuple(with_port(flow, decision) for flow in job.flows))
    fabric = experiment.fabric
    everywhere = replace(_everywhere(job, experiment), steps=steps, first_iteration=first)
    tos = tos_of_flows(decision, job.flows, experiment.levels)
    counted = {flow.id: byte_marks_of(decision, flow, experiment) for flow in job.flows}
    byte_marks = {flow: marks for flow, marks in counted.items() if marks is not None}
    windows = byte_windows_of(decision, job, experiment)
    outgoing, incoming = _connections(job, fabric)
    phases = _phases_by_host(job, experiment)
    plans = {}
    for host in hosts_of(job, fabric):
        places = [place for place, gpu in enumerate(job.gpus) if fabric.host_of_gpu[gpu] == host]
        own = [planned.flow for planned in (*outgoing[host], *incoming[host])]
        plans[host] = replace(
            everywhere,
            gpus=tuple(job.gpus[place] for place in places),
            draws=tuple(job.draws[place] if job.draws else str(place) for place in places),
            phases=phases[host],
            outgoing=tuple(outgoing[host]),
            incoming=tuple(incoming[host]),
            tos=_of(tos, own),
            byte_marks=_of(byte_marks, own),
            byte_windows=_of(windows, own),
        )
    return plans


def _of(values: Mapping[str, T], flows: Iterable[str]) -> dict[str, T]:
    return {flow: values[flow] for flow in flows if flow in values}


def _everywhere(job: Job, experiment: Experiment) -> JobPlan:
    """What all hosts of a job have in common."""
    return JobPlan(
        name=job.name,
        seed=experiment.seed,
        iterations=job.iterations,
        time_scale=experiment.scale.time,
        jitter=job.jitter,
        stragglers=job.stragglers,
        gpus=(),
        draws=(),
        phases=(),
        outgoing=(),
        incoming=(),
        window=0 if experiment.congestion else window_packets(experiment) * segment_size(experiment.scale.mtu),
        slice_size=slice_size(job, experiment),
        departure=departure_s(job, experiment),
        link_rate=_slowest_first_link(job, experiment),
    )


def _connections(job: Job, fabric: Fabric) -> tuple[_ByHost[PlannedConnection], _ByHost[PlannedConnection]]:
    """Host -> connections of ``job`` that leave it, and that come in."""
    outgoing: _ByHost[PlannedConnection] = defaultdict(list)
    incoming: _ByHost[PlannedConnection] = defaultdict(list)
    for flow in job.flows:
        planned = _connection(flow, fabric)
        outgoing[planned.peer].append(planned)
        incoming[fabric.ports[flow.target].host].append(planned)
    return outgoing, incoming


def slice_size(job: Job, experiment: Experiment) -> int:
    """Emulated bytes of a slice: at most the shortest lead of a ring, or each of its hosts would wait for the next."""
    transfers = (transfer for phase in job.phases for transfer in phase.transfers)
    leads = [round(experiment.scale.size(transfer.lead)) for transfer in transfers if transfer.after is not None]
    return max(1, min([SLICE_PACKETS * segment_size(experiment.scale.mtu), *leads]))


def window_packets(experiment: Experiment) -> int:
    """Full packets that every flow of the run alike may have in flight; the most where congestion control says it."""
    if experiment.congestion is not None:
        return CONTROLLED_PACKETS
    fabric, scale = experiment.fabric, experiment.scale
    fastest = max((scale.rate(fabric.uplink(port).capacity) for port in fabric.ports), default=0.0)
    least = MIN_WINDOW_PACKETS + (INSIDE_PACKETS if fabric.shaped_nics else 0)
    return max(least, ceil(WINDOW_S * fastest / 8 / segment_size(scale.mtu)))


def departure_s(job: Job, experiment: Experiment) -> float:
    """Seconds, dilated, by which the job's slowest host link lets a burst start ahead of its rate; 0 without flows.

    A token bucket sends its first packet, and what the bucket holds, at once.
    """
    return segment_size(experiment.scale.mtu) / _slowest_first_link(job, experiment) + BURST_S if job.flows else 0.0


def _slowest_first_link(job: Job, experiment: Experiment) -> float:
    """Bytes per second, emulated, of the slowest link by which the job leaves a host; 0 without flows."""
    fabric = experiment.fabric
    rates = (link.capacity for flow in job.flows for link in _first_links(flow, fabric))
    return experiment.scale.rate(min(rates, default=0.0)) / 8


def _first_links(flow: Flow, fabric: Fabric) -> tuple[Link, ...]:
    """The emulated links over which a flow leaves its host."""
    uplink = fabric.uplink(flow.source)
    nic = fabric.ports[flow.source].nic
    return (fabric.nic_links[nic][0], uplink) if nic in fabric.shaped_nics else (uplink,)


def _inside_s(phase: Phase, host: str, experiment: Experiment) -> float:
    """Seconds, dilated, that the communication of ``phase`` takes inside ``host`` at least."""
    fabric = experiment.fabric
    own = {f"{host}nv", f"{host}rc", *fabric.hosts[host].gpus}
    for nic in fabric.hosts[host].nics:
        own |= {nic, fabric.nics[nic].pcie_switch}
    seconds = bottleneck_time({link: size for link, size in phase.inside if fabric.links[link].source in own}, fabric)
    return seconds * experiment.scale.time


def _phases_by_host(job: Job, experiment: Experiment) -> dict[str, tuple[PhasePlan, ...]]:
    """Host -> its part of every phase; of a pipeline only those it takes part in, and what it awaits before them."""
    hosts = hosts_of(job, experiment.fabric)
    parts = [_phases(phase, job, experiment, number) for number, phase in enumerate(job.phases)]
    if not job.staged:
        return {host: tuple(part[host] for part in parts) for host in hosts}
    found: _ByHost[PhasePlan] = defaultdict(list)
    for number, (phase, part) in enumerate(zip(job.phases, parts, strict=True)):
        members = {experiment.fabric.host_of_gpu[job.gpus[place]] for place in phase.members} or set(hosts)
        for host in (each for each in hosts if each in members):
            for awaited in phase.awaits:
                if parts[awaited][host].into:
                    came = replace(parts[awaited][host], compute_s=0.0, out=(), detached=False, number=awaited)
                    found[host].append(came)
            into = () if phase.detached else part[host].into
            found[host].append(replace(part[host], into=into, number=number))
    return {host: tuple(found[host]) for host in hosts}


def _requests(job: Job, phase: int, time_scale: float) -> tuple[RequestPlan, ...]:
    """By iteration the request that ``phase`` of a serving job is about."""
    served = job.served
    if served is None:
        return ()
    return tuple(
        RequestPlan(served.requests[place].arrival_s * time_scale, served.compute[place], served.size[place])
        for place in served.of_slot(slot_of(phase))
    )


def _phases(phase: Phase, job: Job, experiment: Experiment, number: int) -> dict[str, PhasePlan]:
    """Host -> its part of ``phase``, the job's phase ``number``."""
    requests = _requests(job, number, experiment.scale.time)
    fabric, scale, flows = experiment.fabric, experiment.scale, job.flow_by_id
    out: _ByHost[OutgoingMessage] = defaultdict(list)
    into: _ByHost[IncomingMessage] = defaultdict(list)
    for move in phase.transfers:
        flow, size = flows[move.flow], emulated_size(scale, move.bytes)
        message = OutgoingMessage(move.flow, size, move.after, round(scale.size(move.lead)))
        out[fabric.ports[flow.source].host].append(message)
        into[fabric.ports[flow.target].host].append(IncomingMessage(move.flow, size))
    return {
        host: PhasePlan(
            compute_s=phase.compute_s,
            overlap=phase.overlap,
            out=tuple(out[host]),
            into=tuple(into[host]),
            inside_s=_inside_s(phase, host, experiment),
            background=phase.background,
            detached=phase.detached,
            requests=requests,
        )
        for host in hosts_of(job, fabric)
    }


def _connection(flow: Flow, fabric: Fabric) -> PlannedConnection:
    return PlannedConnection(
        flow=flow.id,
        source=address_of(fabric, flow.source),
        source_port=flow.source_port,
        target=address_of(fabric, flow.target),
        target_port=flow.target_port,
        peer=fabric.ports[flow.source].host,
    )
