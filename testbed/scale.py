"""How far an emulation is shrunk so that this kind of machine carries it truthfully. Pure.

Two knobs. Dividing link rates and messages by the same factor keeps every time as it is and costs
fewer packets per second. Multiplying pauses and messages by the same factor (time dilation) gives
back packets per message at the price of a longer run; reported times are divided again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Final

from testbed.experiment import Scale
from topologies.fabric import Fabric
from topologies.shaping import TCP_IP_HEADER
from workloads.job import Job

PACKET_HOPS_PER_S: Final = 12_600.0
"""Full packets x switches per second that one userspace Open vSwitch thread forwards while 35 % of two cores
stay idle: 48 NICs at 6.25 Mbit/s over three switches, measured with ``benchmarks/forwarding_budget.py``."""

MAX_LINK_RATE: Final = 100e6
"""bit/s; faster emulated links gain nothing and make timers coarse beside a packet's time."""

MIN_CHUNK_PACKETS: Final = 8
"""A ring's chunk of fewer full packets than this spends its time in latency, not in bandwidth."""

MIN_ALLTOALL_PACKETS: Final = 400
"""Full packets that a port sends in an all-to-all: its flows end unevenly, by some six packets of any number."""

MTU: Final = 9000
DILATIONS: Final = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)


@dataclass(frozen=True, slots=True)
class Load:
    """What a scale asks of the machine at the peak, every NIC of every job sending at once."""

    packet_hops_per_s: float
    budget: float

    @property
    def share(self) -> float:
        """Peak load / budget."""
        return self.packet_hops_per_s / self.budget


def peak_load(fabric: Fabric, jobs: Sequence[Job], scale: Scale, budget: float = PACKET_HOPS_PER_S) -> Load:
    """The forwarding load when all sending ports of ``jobs`` send at their full rate."""
    packet_bits = 8 * (scale.mtu - TCP_IP_HEADER)
    return Load(_bit_hops_per_s(fabric, jobs) / scale.bandwidth / packet_bits, budget)


def choose_scale(fabric: Fabric, jobs: Sequence[Job], budget: float = PACKET_HOPS_PER_S) -> Scale:
    """The least shrunk scale whose peak stays within ``budget`` packet-hops per second.

    The bandwidth scale is rounded up to two digits; the dilation is the smallest of ``DILATIONS``
    that leaves every ring chunk ``MIN_CHUNK_PACKETS`` full packets and every port's all-to-all
    ``MIN_ALLTOALL_PACKETS``, or the largest there is.
    """
    packet_bits = 8 * (MTU - TCP_IP_HEADER)
    fastest = max((link.capacity for link in fabric.network_links), default=MAX_LINK_RATE)
    needed = max(_bit_hops_per_s(fabric, jobs) / packet_bits / budget, fastest / MAX_LINK_RATE, 1.0)
    bandwidth = _round_up(needed)
    chunk = min(_chunks(jobs), default=float("inf"))
    alltoall = min(_alltoall_bytes(jobs), default=float("inf"))
    for dilation in DILATIONS:
        scale = Scale(bandwidth, dilation, MTU)
        packets = scale.size(1.0) * 8 / packet_bits
        if chunk * packets >= MIN_CHUNK_PACKETS and alltoall * packets >= MIN_ALLTOALL_PACKETS:
            break
    return scale


def _bit_hops_per_s(fabric: Fabric, jobs: Sequence[Job]) -> float:
    """Sum over sending ports of rate x switches passed, unscaled."""
    hops: dict[str, int] = {}
    for job in jobs:
        for flow in job.flows:
            switches = len(fabric.candidate_paths(flow.source, flow.target)[0]) - 1
            hops[flow.source] = max(switches, hops.get(flow.source, 0))
    return sum(fabric.uplink(port).capacity * count for port, count in hops.items())


def _chunks(jobs: Sequence[Job]) -> list[float]:
    """Bytes that the transfers of rings move at a stretch."""
    transfers = (transfer for job in jobs for phase in job.phases for transfer in phase.transfers)
    return [transfer.lead for transfer in transfers if transfer.after is not None]


def _alltoall_bytes(jobs: Sequence[Job]) -> list[float]:
    """Bytes that each port sends in each phase in messages that wait for nothing."""
    sums: dict[tuple[str, int, str], float] = {}
    for job in jobs:
        for index, phase in enumerate(job.phases):
            for transfer in phase.transfers:
                if transfer.after is None:
                    key = (job.name, index, job.flow_by_id[transfer.flow].source)
                    sums[key] = sums.get(key, 0.0) + transfer.bytes
    return list(sums.values())


def _round_up(value: float) -> float:
    digits = 10.0 ** (floor(log10(value)) - 1)
    return ceil(value / digits - 1e-9) * digits
