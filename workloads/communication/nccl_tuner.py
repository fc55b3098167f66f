"""Which algorithm NCCL takes for an allreduce: the one that its model of latency and bandwidth says ends first.

Formulas and numbers are those of ``src/graph/tuning.cc`` of NCCL, commit b6475625: rings, trees and trees between
NVSwitches (NVLS tree), each with its protocols, on hosts with NVLink and Intel CPUs. The bandwidth is that of the NICs;
caps per channel, which NICs of today do not reach, are left out. NCCL takes fewer channels only where one would have
less than some 256 KiB: for messages that the network notices it takes all.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final, Literal

Algorithm = Literal["ring", "tree"]
"""What the network sees: an NVLS tree is a tree of hosts, too."""

_BASE_US: Final = {"ring": (6.6, 14.0, 8.4), "tree": (6.8, 14.0, 0.0)}
_NVLINK_US: Final = {"ring": (0.6, 1.9, 3.4), "tree": (0.6, 1.25, 28.0)}
_NETWORK_US: Final = {"ring": (2.7, 4.0, 14.0), "tree": (5.0, 8.5, 28.0)}
"""By protocol: LL, LL128, Simple."""
_NVLS_NVLINK_US: Final = 23.0
_NVLS_NETWORK_US: Final = 14.0
_OVERHEAD_US: Final = (1.0, 1.0, 3.0)
_PLATEAU: Final = 1.4
"""By how much rings of the protocol Simple are later than their latencies."""
_LL_GB_S: Final = (39.0, 20.4)
"""Most that the protocol LL carries, up to two hosts and beyond."""
_TREE_SHARE: Final = (
    (1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.0, 1.0, 1.0),
    (1.0, 1.0, 1.0, 1.0, 1.0, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.0),
    (0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9),
)  # fmt: skip
"""Share of its bandwidth that a tree reaches, by protocol and power of two of the size, from 64 B on."""


@dataclass(frozen=True, slots=True)
class RankGroup:
    """Who takes part: ``ranks`` on ``hosts``, NICs of ``rate`` bit/s per host, and whether NVSwitches can add up."""

    ranks: int
    hosts: int
    rate: float
    nvls: bool = False


def allreduce_algorithm(size: float, group: RankGroup) -> Algorithm:
    """Return what NCCL takes for an allreduce of ``size`` bytes; a ring where both take as long."""
    ring_us = min(_ring_us(size, group, protocol) for protocol in range(3))
    tree_us = min(*(_tree_us(size, group, protocol) for protocol in range(3)), _nvls_tree_us(size, group))
    return "ring" if ring_us <= tree_us else "tree"


def _ring_us(size: float, group: RankGroup, protocol: int) -> float:
    bus, steps, between = _bus(group), 2 * (group.ranks - 1), 2 * group.hosts
    bandwidths = (min(_ll(group), bus / 4), bus * (0.7 if group.ranks < 2 * group.hosts else 0.92), bus)
    inside_us = max(_NVLINK_US["ring"][protocol], _OVERHEAD_US[protocol])
    latency_us = _BASE_US["ring"][protocol] + (steps - between) * inside_us + between * _NETWORK_US["ring"][protocol]
    return latency_us * (_PLATEAU if protocol == 2 else 1.0) + size / (1e3 * bandwidths[protocol] * group.ranks / steps)


def _tree_us(size: float, group: RankGroup, protocol: int) -> float:
    bus = 0.92 * _bus(group)
    bandwidths = (min(bus / 3.8, _ll(group)), bus * 120 / 128, bus)
    power = max(0, int(size) >> 6).bit_length() - 1
    share = _TREE_SHARE[protocol][max(power, 0)] if power < len(_TREE_SHARE[protocol]) else 1.0
    inside = (group.ranks // group.hosts - 1) * _NVLINK_US["tree"][protocol]
    latency_us = _BASE_US["tree"][protocol] + 2 * (inside + _levels(group) * _NETWORK_US["tree"][protocol])
    return latency_us + size / (1e3 * bandwidths[protocol] * 0.5 * share)


def _nvls_tree_us(size: float, group: RankGroup) -> float:
    if not group.nvls:
        return inf
    bus = _bus(group) if group.hosts <= 2 else _bus(group) / 2
    return _NVLS_NVLINK_US + 2 * _levels(group) * _NVLS_NETWORK_US + size / (1e3 * bus * 5 / 6)


def _bus(group: RankGroup) -> float:
    """GB/s at which a host sends."""
    return group.rate / 8e9


def _ll(group: RankGroup) -> float:
    return _LL_GB_S[group.hosts > 2]


def _levels(group: RankGroup) -> int:
    return group.hosts.bit_length() - 1
