"""What jobs send, over time: how much leaves the hosts, and how many switches it passes. Pure.

Sizes are payload bits of the scenario, times its seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from topologies.datapath import Datapath
from topologies.fabric import Fabric
from workloads.job import Job

BIN_S: Final = 0.1
"""Seconds of the scenario in a bin of a demand."""

BURST: Final = 1.6
"""A bin may have so many times the work that a second of the machine may: a burst that asks for more than all CPUs is
slower than its links, however idle the rest of the second is."""

SENDING_COST: Final[Mapping[Datapath, float]] = {"nftables": 10.0, "userspace": 0.5, "kernel": 0.5}
"""CPU time to send and receive a packet, as a multiple of what a switch takes to forward it. In the kernel a packet
costs 30 to 45 microseconds at the hosts and a few at each switch, in ovs-vswitchd some 40 and 90."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What one scheduler's run sends: bits that leave hosts in each bin, and bits x switches that they pass."""

    scheduler: str
    sent: tuple[float, ...]
    forwarded: tuple[float, ...]

    def busiest(self, datapath: Datapath, dilation: float) -> float:
        """The work per second that a machine must be fit for, in bits x switches; a host counts as several or less.

        That of the busiest second of the machine, in which time passes ``dilation`` times slower, or a ``BURST``-th of
        that of the busiest bin, whichever is more.
        """
        weight = SENDING_COST[datapath]
        work = [weight * sent + passed for sent, passed in zip(self.sent, self.forwarded, strict=True)]
        second = max(1, min(len(work), round(1.0 / (dilation * BIN_S))))
        return max(_largest_mean(work, second), _largest_mean(work, 1) / BURST) / BIN_S


def most_of(demands: Iterable[Demand], datapath: Datapath, dilation: float) -> float:
    """The most that any demand asks of a machine, 0 without demands; see :meth:`Demand.busiest`."""
    return max((demand.busiest(datapath, dilation) for demand in demands), default=0.0)


def _largest_mean(values: Sequence[float], count: int) -> float:
    """The largest mean of ``count`` values beside each other; 0 without values."""
    sums = [0.0, *accumulate(values)]
    return max((end - begin for begin, end in zip(sums, sums[count:], strict=False)), default=0.0) / count


def peak_demand(fabric: Fabric, jobs: Sequence[Job]) -> Demand:
    """Every NIC port of ``jobs`` sends at its full rate, all the time: more than any run can send."""
    hops = _hops(fabric, jobs)
    rates = {port: fabric.uplink(port).capacity for port in hops}
    sent = sum(rates.values()) * BIN_S
    forwarded = sum(rate * hops[port] for port, rate in rates.items()) * BIN_S
    return Demand("all at once", (sent,), (forwarded,))


def _hops(fabric: Fabric, jobs: Sequence[Job]) -> dict[str, int]:
    """Sending port -> most switches that its flows pass."""
    hops: dict[str, int] = {}
    for job in jobs:
        for flow in job.flows:
            switches = len(fabric.candidate_paths(flow.source, flow.target)[0]) - 1
            hops[flow.source] = max(switches, hops.get(flow.source, 0))
    return hops
