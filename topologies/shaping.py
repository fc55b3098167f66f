"""Strict priority levels, how packets carry them, and how every direction of every link is shaped by them.

Level 0 is served first, as class selector CS7; level ``k`` is DSCP ``8 * (7 - k)``; level 7 is the default class,
DSCP 0. Settings are values, tc commands text.

One shaper per transmitting interface with eight strict priority classes chosen by DSCP, and beside it a class for
acknowledgements. Only the commands are made here; :mod:`topologies.mininet_adapter` runs them and reads them back.

HTB is strict between ``prio`` values only while each class's own guaranteed ``rate`` is
negligible, hence ``GUARANTEED_BIT_PER_S``; everything above it is borrowed from the parent in
order of priority. Where the kernel has ``sch_prio`` the priorities are a PRIO qdisc under a
plain HTB shaper, which is strict by construction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

DEFAULT_LEVELS: Final = 8
Discipline = Literal["htb", "prio"]

ETHERNET_HEADER: Final = 14
TCP_IP_HEADER: Final = 40
"""IPv4 and TCP without options: time stamps are off in the emulated hosts."""
ACKNOWLEDGEMENT_LEVEL: Final = 0
"""Acknowledgements travel before all data; those of workers are marked so, too. RDMA senders do not stop for want of
acknowledgements; those of TCP, with a fixed window, do. At their flow's level they waited behind higher levels of the
opposite direction, so a flow stood still although its own path was free: GPT in ``clos96-2to1`` under Crux took 1.741 s
instead of 1.667 s an iteration (1.666 s by the flow engine)."""
ACKNOWLEDGEMENT_CLASS: Final = 2
ACKNOWLEDGEMENT_LEAF: Final = 0x20
"""Acknowledgements have class ``1:2``, and its queue this handle. The class is beside the shaper, not below it: an
acknowledgement that waits for the shaper costs a timer interrupt, and so does the data that then waits for the
acknowledgement. The class has a rate that acknowledgements never reach; the shaper's rate is all for data."""

_TCP_FLAGS: Final = 33
"""Where a packet without IP options has them, in bytes."""
_ONLY_ACK: Final = 0x10
_FLAGS_BUT_ECN: Final = 0x3F

GUARANTEED_BIT_PER_S: Final = 8
GUARANTEED_BURST: Final = 100
"""A class sends what it is guaranteed before anything that a higher class must borrow: at this rate and bucket that is
its very first packet, and later one a minute, after which the kernel forgives the debt."""
BURST_S: Final = 0.004
"""Lateness of the shaper's timer that the bucket makes good: less, and a busy machine's links fall short of their rate.
It lets a burst start ahead of the rate by as much, which senders wait out."""

NIC_QUEUE_PACKETS: Final = 2
"""Full packets of a connection that wait in its own NIC (TCP small queues): one in transmission and the next. All
connections must have as many, because they share the NIC in proportion. The kernel's own limit does not see to that: it
is two packets or 1 ms of what the connection seems to send, whichever is more, so that one with a short round trip had
three or four, and all-to-alls ended 1 to 3 % late."""

LEAF_HANDLE: Final = 0x10
"""The leaf queue of level k is qdisc ``1k:`` (hexadecimal), in both disciplines."""


def dscp_of_level(level: int, levels: int = DEFAULT_LEVELS) -> int:
    """Return the DSCP of ``level``; ``ValueError`` unless ``0 <= level < levels <= 8``."""
    if not 1 <= levels <= DEFAULT_LEVELS:
        raise ValueError(f"levels must be from 1 to {DEFAULT_LEVELS}, not {levels}")
    if not 0 <= level < levels:
        raise ValueError(f"level must be from 0 to {levels - 1}, not {level}")
    return 8 * (DEFAULT_LEVELS - 1 - level)


def level_of_dscp(dscp: int) -> int:
    """Return the level whose class holds ``dscp``; ``ValueError`` unless it is a class selector, 0, 8, .. 56."""
    if dscp % 8 or not 0 <= dscp <= 56:
        raise ValueError(f"DSCP must be one of 0, 8, .. 56, not {dscp}")
    return DEFAULT_LEVELS - 1 - dscp // 8


def tos_of_level(level: int, levels: int = DEFAULT_LEVELS) -> int:
    """Return the value of ``IP_TOS`` for ``level``: its DSCP above the two ECN bits."""
    return dscp_of_level(level, levels) << 2


@dataclass(frozen=True, slots=True)
class Shaping:
    """Shaping of one interface: ``rate`` is payload bit/s, ``buffer`` the bytes that may wait at each level."""

    interface: str
    rate: float
    mtu: int
    buffer: int
    levels: int = DEFAULT_LEVELS
    discipline: Discipline = "htb"

    @property
    def wire_rate(self) -> int:
        """Rate in bit/s the shaper is set to: the payload rate and the headers of full packets."""
        return round(self.rate / payload_share(self.mtu))

    @property
    def burst(self) -> int:
        """Bucket size in bytes."""
        return max(1600, round(self.wire_rate / 8 * BURST_S))


def segment_size(mtu: int) -> int:
    """Payload bytes of a full packet."""
    return mtu - TCP_IP_HEADER


def payload_share(mtu: int) -> float:
    """Payload bytes per byte on a wire that carries full packets."""
    return segment_size(mtu) / (mtu + ETHERNET_HEADER)


def tc_commands(shaping: Shaping) -> tuple[str, ...]:
    """Lines for ``tc -batch`` that set up ``shaping`` on an interface without a root qdisc."""
    return tuple(_htb(shaping) if shaping.discipline == "htb" else _prio(shaping))


def rate_commands(shaping: Shaping) -> tuple[str, ...]:
    """Lines for ``tc -batch`` that give an interface with another rate the rate of ``shaping``; queues stay."""
    roots = [_class_of_root(shaping, handle) for handle in ("1:1", f"1:{ACKNOWLEDGEMENT_CLASS}")]
    levels = [_class_of_level(shaping, level) for level in range(shaping.levels)] if shaping.discipline == "htb" else []
    return tuple(line.replace("class add", "class change", 1) for line in (*roots, *levels))


def _htb(shaping: Shaping) -> Iterator[str]:
    lowest = shaping.levels - 1
    yield from _root(shaping, default=f"1{lowest}")
    for level in range(shaping.levels):
        yield _class_of_level(shaping, level)
        yield _leaf(shaping, f"1:1{level}", LEAF_HANDLE + level)
        if level < lowest:
            yield _filter(shaping, "1:", _of_level(level), f"1:1{level}")


def _class_of_level(shaping: Shaping, level: int) -> str:
    return (
        f"class add dev {shaping.interface} parent 1:1 classid 1:1{level} htb rate {GUARANTEED_BIT_PER_S}bit "
        f"ceil {shaping.wire_rate}bit prio {level} burst {GUARANTEED_BURST} cburst {shaping.burst} "
        f"quantum {shaping.mtu + ETHERNET_HEADER}"
    )


def _prio(shaping: Shaping) -> Iterator[str]:
    lowest = shaping.levels - 1
    yield from _root(shaping, default="1")
    priomap = " ".join([str(lowest)] * 16)
    yield f"qdisc add dev {shaping.interface} parent 1:1 handle 2: prio bands {shaping.levels} priomap {priomap}"
    for level in range(shaping.levels):
        yield _leaf(shaping, f"2:{level + 1}", LEAF_HANDLE + level)
        if level < lowest:
            yield _filter(shaping, "2:", _of_level(level), f"2:{level + 1}")


def _root(shaping: Shaping, default: str) -> Iterator[str]:
    """The qdisc, the shaper of data, and the class of acknowledgements beside it with its queue and its filter.

    Acknowledgements are packets of 40 bytes with nothing but ACK set, whatever their mark: those of real programs carry
    their flow's. Any other packet, the last one of a message included, keeps its place in the queue of its level.
    """
    beside = f"1:{ACKNOWLEDGEMENT_CLASS}"
    yield f"qdisc add dev {shaping.interface} root handle 1: htb default {default}"
    yield _class_of_root(shaping, "1:1")
    yield _class_of_root(shaping, beside)
    yield _leaf(shaping, beside, ACKNOWLEDGEMENT_LEAF)
    pure = f"match u16 {TCP_IP_HEADER} 0xffff at 2 match u8 {_ONLY_ACK:#x} {_FLAGS_BUT_ECN:#x} at {_TCP_FLAGS}"
    yield _filter(shaping, "1:", pure, beside)


def _class_of_root(shaping: Shaping, handle: str) -> str:
    rate, burst = f"{shaping.wire_rate}bit", shaping.burst
    return (
        f"class add dev {shaping.interface} parent 1: classid {handle} htb "
        f"rate {rate} ceil {rate} burst {burst} cburst {burst}"
    )


def _leaf(shaping: Shaping, parent: str, handle: int) -> str:
    return f"qdisc add dev {shaping.interface} parent {parent} handle {handle:x}: bfifo limit {shaping.buffer}"


def _of_level(level: int) -> str:
    return f"match ip dsfield {tos_of_level(level):#x} 0xfc"


def _filter(shaping: Shaping, parent: str, match: str, target: str) -> str:
    """``match`` to class; packets that no filter names, non-IP ones included, get the lowest level."""
    return f"filter add dev {shaping.interface} parent {parent} protocol ip prio 1 u32 {match} flowid {target}"
