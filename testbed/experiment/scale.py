"""How far an emulation is shrunk so that this machine carries it truthfully. Pure.

Three knobs. Dividing link rates and messages by the same factor keeps every time as it is and costs
fewer packets per second. Multiplying pauses and messages by the same factor (time dilation) gives
back packets per message at the price of a longer run; reported times are divided again. Smaller
packets give more of them per message where the machine forwards more of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, log10
from typing import Final

from testbed.errors import CannotRunError
from testbed.experiment.experiment import Measure, Scale
from testbed.machine.budget import DEFAULT, Budget
from topologies.fabric import Fabric, Path
from topologies.shaping import TCP_IP_HEADER
from workloads.analysis import isolated
from workloads.job import Flow, Job

MAX_LINK_RATE: Final = 100e6
"""bit/s; faster emulated links gain nothing and make timers coarse beside a packet's time."""

ALLTOALL_LINK_RATE: Final = 50e6
"""bit/s at most where jobs have all-to-alls, as long as these keep packets enough: at 100 Mbit/s they end 0.4 to 0.5 %
late, at 67 Mbit/s 0.2 to 0.3 %, at 50 Mbit/s not measurably."""

MIN_CHUNK_PACKETS: Final = 8
"""A ring's chunk of fewer full packets than this spends its time in latency, not in bandwidth."""

FINE_CHUNK_PACKETS: Final = 16
FINE_DILATION: Final = 2.0
"""So many packets are worth a run that takes up to so many times as long: each phase ends in a packet's time more than
it would as a fluid."""

MIN_ALLTOALL_PACKETS: Final = 400
"""Full packets that a port sends in an all-to-all: its flows end unevenly, by some six packets of any number."""

DILATIONS: Final = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
"""What ``auto`` may choose: a run of minutes stays one of less than an hour."""

LEAST_CHUNK_PACKETS: Final = 1
LEAST_ALLTOALL_PACKETS: Final = 20
"""Fewer full packets than these, at the largest dilation, are no picture of the collective: ``auto`` refuses."""

MANAGED_SHARE: Final = 0.5
"""Share of the budget for jobs under a cluster manager: they cost CPU when they come and go as well, and no iteration
that a neighbour of the machine disturbed is rerun."""

_Burst = tuple[str, int, str]
"""Job, phase and port: what a port sends in a phase."""

LONGEST_RUN_S: Final = 3600.0
"""Seconds of wall clock that ``auto`` lets one scheduler's run be planned for."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a scale asks of the machine at the peak, every NIC of every job sending at once."""

    packet_hops_per_s: float
    budget: float

    @property
    def share(self) -> float:
        """Peak load / budget."""
        return self.packet_hops_per_s / self.budget


@dataclass(frozen=True, slots=True)
class Grain:
    """Full packets in the smallest ring chunk and in what a port sends in the smallest all-to-all; infinite if none."""

    chunk: float
    alltoall: float

    @property
    def share(self) -> float:
        """The smaller of the two as a share of what is wanted; 1 or more is fine."""
        return min(self.chunk / MIN_CHUNK_PACKETS, self.alltoall / MIN_ALLTOALL_PACKETS)

    @property
    def too_coarse(self) -> bool:
        """Whether there are fewer packets than any picture needs."""
        return self.chunk < LEAST_CHUNK_PACKETS or self.alltoall < LEAST_ALLTOALL_PACKETS

    @property
    def worst(self) -> str:
        """The smaller of the two in words."""
        if self.alltoall / MIN_ALLTOALL_PACKETS < self.chunk / MIN_CHUNK_PACKETS:
            return f"a port's smallest all-to-all is {self.alltoall:.2g} packets, {MIN_ALLTOALL_PACKETS} are wanted"
        return f"the smallest chunk of a ring is {self.chunk:.2g} packets, {MIN_CHUNK_PACKETS} are wanted"

    def dilation_wanted(self, scale: Scale) -> int:
        """The whole dilation, in place of that of ``scale``, that gives the packets wanted."""
        return ceil(scale.time / self.share - 1e-9)


def peak_load(fabric: Fabric, jobs: Sequence[Job], scale: Scale, budget: Budget = DEFAULT) -> Load:
    """The forwarding load when all sending ports of ``jobs`` send at their full rate."""
    hops = _hops(fabric, jobs)
    load = _bit_hops_per_s(fabric, hops) / scale.bandwidth / _packet_bits(scale.mtu)
    return Load(load, _allowed(fabric, jobs, hops, budget, scale.mtu))


def grain(jobs: Sequence[Job], scale: Scale) -> Grain:
    """How finely ``scale`` cuts the messages of ``jobs``; those of real programs are their own business."""
    jobs = [job for job in jobs if job.external is None]
    packets = scale.size(1.0) * 8 / _packet_bits(scale.mtu)
    return Grain(_smallest(_chunks(jobs)) * packets, _smallest(_alltoall_bytes(jobs)) * packets)


def choose_scale(fabric: Fabric, jobs: Sequence[Job], budget: Budget = DEFAULT) -> Scale:
    """The least shrunk scale whose peak stays within ``budget``.

    Links run at ``MAX_LINK_RATE`` at most, at ``ALLTOALL_LINK_RATE`` where all-to-alls stay fine enough there.
    The bandwidth scale is rounded up to two digits. The dilation is the smallest of ``DILATIONS`` that leaves
    every ring chunk ``FINE_CHUNK_PACKETS`` full packets, up to ``FINE_DILATION``, or else ``MIN_CHUNK_PACKETS``,
    and every port's all-to-all ``MIN_ALLTOALL_PACKETS``, with the largest packet size of the budget that does;
    where none does, the largest dilation, with the packet size that comes nearest. Raises :class:`CannotRunError`
    with the dilation that would do where even that leaves fewer than ``LEAST_CHUNK_PACKETS`` or
    ``LEAST_ALLTOALL_PACKETS``. Beside real programs, which take their own time, the dilation is 1.
    """
    bandwidths = {mtu: _bandwidth(fabric, jobs, budget, mtu) for mtu in budget.mtus}
    real = any(job.external is not None for job in jobs)
    dilations = DILATIONS[:1] if real else DILATIONS
    scales = [Scale(bandwidth, dilation, mtu) for dilation in dilations for mtu, bandwidth in bandwidths.items()]
    enough = [scale for scale in scales if grain(jobs, scale).share >= 1]
    fine = [s for s in enough if s.time <= FINE_DILATION and grain(jobs, s).chunk >= FINE_CHUNK_PACKETS]
    if enough:
        return _slowed_for_alltoalls(fabric, jobs, (fine or enough)[0])
    tried = [Scale(bandwidth, dilations[-1], mtu) for mtu, bandwidth in bandwidths.items()]
    best = max(tried, key=lambda scale: grain(jobs, scale).share)
    found = grain(jobs, best)
    if found.too_coarse and real:
        raise CannotRunError(
            f"scale auto: a real program takes its own time, and at dilation 1 {found.worst}: raise 'communication', "
            f"or set scale: {_written(best, 1)}"
        )
    if found.too_coarse:
        needed = found.dilation_wanted(best)
        raise CannotRunError(
            f"scale auto: at the largest dilation, {best.time:g}, {found.worst}: dilation {needed} would do, "
            f"set scale: {_written(best, needed)}"
        )
    return best


def refuse_long_run(fabric: Fabric, jobs: Sequence[Job], measure: Measure, scale: Scale) -> None:
    """Raise :class:`CannotRunError` if a run at ``scale`` is planned longer than ``LONGEST_RUN_S``; say what would do.

    Planned is: each job alone until its iterations are made, at most ``measure.time_limit``, times the dilation.
    """
    wanted = measure.warmup + measure.iterations
    ends = [job.start_s + min(wanted, job.iterations) * isolated(job, fabric).iteration_s for job in jobs]
    planned = min(max(ends, default=0.0), measure.time_limit_s)
    if planned * scale.time > LONGEST_RUN_S:
        raise CannotRunError(
            f"scale auto: {planned:.0f} s at dilation {scale.time:g} are {planned * scale.time / 60:.0f} minutes, more "
            f"than {LONGEST_RUN_S / 60:.0f}: measure for {LONGEST_RUN_S / scale.time:.0f} s (measure.iterations, "
            f"measure.time_limit), or set scale: {_written(scale, floor(10 * LONGEST_RUN_S / planned) / 10)}"
        )


def pipeline_fill(job: Job, fabric: Fabric, scale: Scale, paths: Mapping[str, Path]) -> float:
    """Seconds, undilated, that a phase of ``job`` takes beyond its bytes: the last packet on its way.

    A packet is received whole before it is sent on, once for each link after the first; a message is through when
    its last packet has arrived.
    """
    bits = _packet_bits(scale.mtu)
    fills = [sum(bits / scale.rate(fabric.links[link].capacity) for link in paths[flow.id][1:]) for flow in job.flows]
    return max(fills, default=0.0) / scale.time


def _written(scale: Scale, time: float) -> str:
    return f"{{bandwidth: {scale.bandwidth:g}, time: {time:g}, mtu: {scale.mtu}}}"


def _bandwidth(fabric: Fabric, jobs: Sequence[Job], budget: Budget, mtu: int) -> float:
    hops = _hops(fabric, jobs)
    fastest = max((link.capacity for link in fabric.network_links), default=MAX_LINK_RATE)
    within_budget = _bit_hops_per_s(fabric, hops) / _packet_bits(mtu) / _allowed(fabric, jobs, hops, budget, mtu)
    return _round_up(max(within_budget, fastest / MAX_LINK_RATE, 1.0))


def _slowed_for_alltoalls(fabric: Fabric, jobs: Sequence[Job], scale: Scale) -> Scale:
    """``scale`` with links slow enough for all-to-alls, if every message keeps the packets it needs."""
    fastest = max((link.capacity for link in fabric.network_links), default=0.0)
    slowed = replace(scale, bandwidth=max(scale.bandwidth, _round_up(fastest / ALLTOALL_LINK_RATE)))
    before, after = grain(jobs, scale), grain(jobs, slowed)
    fine_enough = after.share >= 1 and after.chunk >= min(before.chunk, FINE_CHUNK_PACKETS)
    return slowed if _has_alltoall(jobs) and fine_enough else scale


def _has_alltoall(jobs: Sequence[Job]) -> bool:
    """Whether a port sends to several ports at once, none of it waiting for anything."""
    targets: dict[_Burst, set[str]] = {}
    for burst, flow, _ in _independent_messages(jobs):
        targets.setdefault(burst, set()).add(flow.target)
    return any(len(found) > 1 for found in targets.values())


def _packet_bits(mtu: int) -> float:
    return 8.0 * (mtu - TCP_IP_HEADER)


def _hops(fabric: Fabric, jobs: Sequence[Job]) -> dict[str, int]:
    """Sending port -> most switches that its flows pass."""
    hops: dict[str, int] = {}
    for job in jobs:
        for flow in job.flows:
            switches = len(fabric.candidate_paths(flow.source, flow.target)[0]) - 1
            hops[flow.source] = max(switches, hops.get(flow.source, 0))
    return hops


def _allowed(fabric: Fabric, jobs: Sequence[Job], hops: Mapping[str, int], budget: Budget, mtu: int) -> float:
    """Packet-hops per second of ``budget`` for these jobs, all ports of ``hops`` sending."""
    rate = sum(fabric.uplink(port).capacity for port in hops)
    switches = _bit_hops_per_s(fabric, hops) / rate if rate else 1.0
    return budget.at(mtu, len(hops), _channels(jobs), switches)


def _channels(jobs: Sequence[Job]) -> float:
    """Connections per pair of ports that has any, on average; those of different jobs are different pairs."""
    flows = [(job.name, flow.source, flow.target) for job in jobs for flow in job.flows]
    return len(flows) / max(1, len(set(flows)))


def _bit_hops_per_s(fabric: Fabric, hops: Mapping[str, int]) -> float:
    """Sum over sending ports of rate x switches passed, unscaled."""
    return sum(fabric.uplink(port).capacity * count for port, count in hops.items())


def _smallest(sizes: Sequence[float]) -> float:
    return min(sizes, default=float("inf"))


def _chunks(jobs: Sequence[Job]) -> list[float]:
    """Bytes that the transfers of rings move at a stretch."""
    transfers = (transfer for job in jobs for phase in job.phases for transfer in phase.transfers)
    return [transfer.lead for transfer in transfers if transfer.after is not None]


def _alltoall_bytes(jobs: Sequence[Job]) -> list[float]:
    """Bytes that each port sends in each phase in messages that wait for nothing."""
    sums: dict[_Burst, float] = {}
    for burst, _, size in _independent_messages(jobs):
        sums[burst] = sums.get(burst, 0.0) + size
    return list(sums.values())


def _independent_messages(jobs: Sequence[Job]) -> Iterator[tuple[_Burst, Flow, float]]:
    """Every message that waits for nothing: whose it is, its flow and its bytes; those of real programs are unknown."""
    for job in jobs:
        if job.external is None:
            for index, phase in enumerate(job.phases):
                for transfer in phase.transfers:
                    if transfer.after is None:
                        flow = job.flow_by_id[transfer.flow]
                        yield (job.name, index, flow.source), flow, transfer.bytes


def _round_up(value: float) -> float:
    digits = 10.0 ** (floor(log10(value)) - 1)
    return ceil(value / digits - 1e-9) * digits
