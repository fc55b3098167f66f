"""How packets of a host pass the queues of PCIe: settings as values, ``ip`` and ``tc`` commands as text.

The link from a PCIe switch to its NIC, and the one back, are an ``ifb`` device each, shaped like every
other link. What a port of the NIC is about to send is redirected to the first before it reaches the
port's own queue, and comes back to that queue at the rate of PCIe, in the order of levels; what a port
has received is redirected to the second before the host sees it. All ports of a NIC share both. No
switch forwards these packets, so they cost no packet hop: an ``ifb`` device hands on in the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Detour:
    """Interfaces: a ``port``, the device ``out`` that its packets pass before it, and ``into`` after it."""

    port: str
    out: str
    into: str


def device_commands(detours: Iterable[Detour], mtu: int) -> Iterator[str]:
    """Lines for ``ip -batch`` that make the devices of ``detours``, each once."""
    for device in dict.fromkeys(name for detour in detours for name in (detour.out, detour.into)):
        yield f"link add {device} mtu {mtu} type ifb"
        yield f"link set {device} up"


def detour_commands(detours: Iterable[Detour]) -> Iterator[str]:
    """Lines for ``tc -batch`` that lead all packets of each port over its devices."""
    for detour in detours:
        yield f"qdisc add dev {detour.port} clsact"
        # Two numbers: the kernel lists u32 filters of one number together, whatever their direction.
        for number, direction, device in ((1, "egress", detour.out), (2, "ingress", detour.into)):
            yield (
                f"filter add dev {detour.port} {direction} protocol all prio {number} u32 match u32 0 0 "
                f"action mirred egress redirect dev {device}"
            )
