"""What jobs send, over time: how much leaves the hosts, and how many switches it passes. Pure.

Sizes are payload bits of the scenario, times its seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from topologies.datapath import Datapath
from topologies.fabric import Fabric
from workloads.job import Job

BIN_S: Final = 0.1
"""Seconds of the scenario in a bin of a demand."""

LONGEST_WINDOW_S: Final = 1.0
"""A second of the machine's clock is no more of the scenario's, since runs are never faster than that."""

SENDING_COST: Final[Mapping[Datapath, float]] = {"nftables": 10.0, "userspace": 0.5, "kernel": 0.5}
"""CPU time to send and receive a packet, as a multiple of what a switch takes to forward it. In the kernel a packet
costs 30 to 45 microseconds at the hosts and a few at each switch, in ovs-vswitchd some 40 and 90."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What one scheduler's run sends: bits that leave hosts in each bin, and bits x switches that they pass."""

    scheduler: str
    sent: tuple[float, ...]
    forwarded: tuple[float, ...]

    def busiest(self, window_s: float, datapath: Datapath) -> float:
        """The most work in any ``window_s``, per second of it, in bits x visits: a host's count as several switches'.

        A bin is as busy all through; a window shorter than one is as busy as the busiest bin.
        """
        weight = SENDING_COST[datapath]
        work = [weight * sent + hops for sent, hops in zip(self.sent, self.forwarded, strict=True)]
        window = max(1.0, window_s / BIN_S)
        whole, rest = int(window), window - int(window)
        sums = [0.0, *accumulate([*work, *[0.0] * (whole + 1)])]
        padded = [0.0, *work, *[0.0] * (whole + 1)]
        # The busiest window begins or ends where a bin does.
        most = max(
            (sums[i + whole] - sums[i] + rest * max(padded[i], padded[i + whole + 1]) for i in range(len(work))),
            default=0.0,
        )
        return most / (window * BIN_S)


def peak_demand(fabric: Fabric, jobs: Sequence[Job]) -> Demand:
    """Every NIC port of ``jobs`` sends at its full rate, all the time: more than any run can send."""
    hops = _hops(fabric, jobs)
    rates = {port: fabric.uplink(port).capacity for port in hops}
    sent = sum(rates.values()) * BIN_S
    forwarded = sum(rate * hops[port] for port, rate in rates.items()) * BIN_S
    bins = round(LONGEST_WINDOW_S / BIN_S)
    return Demand("all at once", (sent,) * bins, (forwarded,) * bins)


def _hops(fabric: Fabric, jobs: Sequence[Job]) -> dict[str, int]:
    """Sending port -> most switches that its flows pass."""
    hops: dict[str, int] = {}
    for job in jobs:
        for flow in job.flows:
            switches = len(fabric.candidate_paths(flow.source, flow.target)[0]) - 1
            hops[flow.source] = max(switches, hops.get(flow.source, 0))
    return hops
