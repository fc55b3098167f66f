"""How far an emulation is shrunk so that this machine carries it truthfully. Pure.

Three knobs. Dividing link rates and messages by the same factor keeps every time as it is and costs
fewer packets per second. Multiplying pauses and messages by the same factor (time dilation) gives
back packets per message at the price of a longer run; reported times are divided again. Smaller
packets give more of them per message where the machine forwards more of them.

What a machine carries is a :class:`Capacity`; what a run asks of it, a :class:`Demand`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, log10
from typing import Final

from testbed.errors import CannotRunError
from testbed.experiment.capacity import MTUS, Capacity
from testbed.experiment.demand import Demand, most_of, peak_demand
from testbed.experiment.experiment import Measure, Scale
from topologies.fabric import Fabric, Path
from topologies.shaping import segment_size
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

MANAGED_SHARE: Final = 0.75
"""Share of the capacity for jobs under a cluster manager: they cost CPU when they come and go as well, and no iteration
that a neighbour of the machine disturbed is rerun."""

SMALLER_SHARE: Final = 0.8
"""Share of the capacity that smaller packets may take than are needed: they come in longer trains of interrupts."""

STEP_DOWN: Final = 1.3
"""By how much rates fall where a run has found the machine too busy."""

_Burst = tuple[str, int, str]
"""Job, phase and port: what a port sends in a phase."""

LONGEST_RUN_S: Final = 3600.0
"""Seconds of wall clock that ``auto`` lets one scheduler's run be planned for."""


@dataclass(frozen=True, slots=True)
class Grain:
    """Full packets in the smallest ring chunk, and in what a port sends in the smallest all-to-all; infinite if none.

    A message that a port sends alone counts as a chunk.
    """

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
        what = "the smallest chunk of a ring, or message alone,"
        return f"{what} is {self.chunk:.2g} packets, {MIN_CHUNK_PACKETS} are wanted"

    def dilation_wanted(self, scale: Scale) -> int:
        """The whole dilation, in place of that of ``scale``, that gives the packets wanted."""
        return ceil(scale.time / self.share - 1e-9)


def load_share(demands: Sequence[Demand], scale: Scale, capacity: Capacity) -> float:
    """What ``demands`` ask of a machine at ``scale``, as a share of ``capacity``; see :meth:`Demand.busiest`."""
    return _bandwidth_needed(demands, scale.mtu, capacity, scale.time) / scale.bandwidth


def grain(jobs: Sequence[Job], scale: Scale) -> Grain:
    """How finely ``scale`` cuts the messages of ``jobs``; those of real programs are their own business."""
    jobs = [job for job in jobs if job.external is None]
    packets = scale.size(1.0) * 8 / scale.packet_bits
    single, several = _bursts(jobs)
    return Grain(_smallest([*_chunks(jobs), *single]) * packets, _smallest(several) * packets)


def choose_scale(
    fabric: Fabric,
    jobs: Sequence[Job],
    capacity: Capacity,
    demands: Sequence[Demand] = (),
    mtus: Sequence[int] = tuple(MTUS),
) -> Scale:
    """The least shrunk scale at which all that ``demands`` ask of a machine stays within ``capacity``.

    Without demands all ports of ``jobs`` are taken to send at once, all the time.
    Links run at ``MAX_LINK_RATE`` at most, at ``ALLTOALL_LINK_RATE`` where all-to-alls stay fine enough there.
    The bandwidth scale is rounded up to two digits. The dilation is the smallest of ``DILATIONS`` that leaves
    every ring chunk ``FINE_CHUNK_PACKETS`` full packets, up to ``FINE_DILATION``, or else ``MIN_CHUNK_PACKETS``,
    and every port's all-to-all ``MIN_ALLTOALL_PACKETS``. Packets are the largest of ``mtus``, smaller ones only where
    links run at ``MAX_LINK_RATE`` and that saves dilation. If no dilation does, the largest is taken.
    Raises :class:`CannotRunError` with the dilation that would do where even that leaves fewer than
    ``LEAST_CHUNK_PACKETS`` or ``LEAST_ALLTOALL_PACKETS``. Beside real programs, which take their own time, the dilation
    is 1.
    """
    demands = demands or (peak_demand(fabric, jobs),)
    real = any(job.external is not None for job in jobs)
    dilations = DILATIONS[:1] if real else DILATIONS
    scales = [
        scale
        for dilation in dilations
        for mtu in mtus
        for scale in [Scale(_bandwidth(fabric, demands, mtu, capacity, dilation), dilation, mtu)]
        if mtu == mtus[0] or scale.bandwidth <= _round_up(fastest_scale(fabric))
    ]
    enough = [scale for scale in scales if grain(jobs, scale).share >= 1]
    fine = [s for s in enough if s.time <= FINE_DILATION and grain(jobs, s).chunk >= FINE_CHUNK_PACKETS]
    if enough:
        return _slowed_for_alltoalls(fabric, jobs, (fine or enough)[0])
    best = max(scales, key=lambda scale: (scale.time, grain(jobs, scale).share))
    _refuse_too_coarse(grain(jobs, best), best, real)
    return best


def finest(scale: Scale, fabric: Fabric, capacity: Capacity, demands: Sequence[Demand]) -> Scale:
    """``scale`` with the smallest packets that ``capacity`` allows at the same rates: more of them in every message."""
    capacity = capacity.part(SMALLER_SHARE)
    fits = [mtu for mtu in MTUS if _bandwidth(fabric, demands, mtu, capacity, scale.time) <= scale.bandwidth]
    return replace(scale, mtu=min([*fits, scale.mtu]))


def _refuse_too_coarse(found: Grain, best: Scale, real: bool) -> None:
    if found.too_coarse and real:
        raise CannotRunError(
            f"scale auto: a real program takes its own time, and at dilation 1 {found.worst}: raise 'communication', "
            f"or set scale: {_written(best, 1)}"
        )
    if found.too_coarse:
        needed = found.dilation_wanted(best)
        raise CannotRunError(
            f"scale auto: at the largest dilation, {best.time:g}, {found.worst}: dilation {needed} would do, "
            f"compute rates with --engine flow, or set scale: {_written(best, needed)}"
        )


def step_down(jobs: Sequence[Job], scale: Scale) -> Scale:
    """The next scale for a machine that is too busy: lower rates, and the dilation that gives back the packets."""
    lower = replace(scale, bandwidth=_round_up(STEP_DOWN * scale.bandwidth))
    if any(job.external is not None for job in jobs):
        return lower
    longer = [replace(lower, time=dilation) for dilation in DILATIONS if dilation >= scale.time]
    before = min(1.0, grain(jobs, scale).share)
    return next((each for each in longer if grain(jobs, each).share >= before), longer[-1] if longer else lower)


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
    bits = scale.packet_bits
    fills = [sum(bits / scale.rate(fabric.links[link].capacity) for link in paths[flow.id][1:]) for flow in job.flows]
    return max(fills, default=0.0) / scale.time


def _written(scale: Scale, time: float) -> str:
    return f"{{bandwidth: {scale.bandwidth:g}, time: {time:g}, mtu: {scale.mtu}}}"


def _bandwidth(fabric: Fabric, demands: Sequence[Demand], mtu: int, capacity: Capacity, dilation: float) -> float:
    return _round_up(max(_bandwidth_needed(demands, mtu, capacity, dilation), fastest_scale(fabric)))


def fastest_scale(fabric: Fabric) -> float:
    """The scale at which the fastest links run at ``MAX_LINK_RATE``, or as they are."""
    return max(1.0, max((link.capacity for link in fabric.network_links), default=0.0) / MAX_LINK_RATE)


def _bandwidth_needed(demands: Sequence[Demand], mtu: int, capacity: Capacity, dilation: float) -> float:
    """The scale of rates at which ``demands`` ask for all of ``capacity``."""
    return most_of(demands, capacity.datapath, dilation) / (8.0 * segment_size(mtu)) / capacity.of(mtu)


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


def _smallest(sizes: Sequence[float]) -> float:
    return min(sizes, default=float("inf"))


def _chunks(jobs: Sequence[Job]) -> list[float]:
    """Bytes that the transfers of rings move at a stretch."""
    transfers = (transfer for job in jobs for phase in job.phases for transfer in phase.transfers)
    return [transfer.lead for transfer in transfers if transfer.after is not None]


def _bursts(jobs: Sequence[Job]) -> tuple[list[float], list[float]]:
    """Bytes that each port sends in each phase in messages that wait for nothing: one message, or several together.

    A message by itself, as between stages of a pipeline, ends like a ring's chunk; those of several end unevenly.
    """
    sizes: dict[_Burst, list[float]] = {}
    for burst, _, size in _independent_messages(jobs):
        sizes.setdefault(burst, []).append(size)
    single = [size for each in sizes.values() if len(each) == 1 for size in each]
    return single, [sum(each) for each in sizes.values() if len(each) > 1]


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
