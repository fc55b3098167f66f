"""What the flow engine asks of a network: fluids whose rates are computed, or packets one at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from math import inf
from typing import NamedTuple, Protocol

from testbed.experiment.network_model import PER_FLOW
from workloads.job import Job


class QueueSample(NamedTuple):
    """Of a level of a link: bytes that wait now, and since the last sample the most, seconds of pauses, and drops."""

    queued: float
    longest: float
    paused_s: float
    dropped: int


@dataclass(frozen=True, slots=True)
class PacketCounts:
    """Packets delivered, and those of them with a mark or out of order; seconds that pauses held flows, and victims."""

    packets: int = 0
    marked: int = 0
    out_of_order: int = 0
    held_s: float = 0.0
    victim_s: float = 0.0

    def __add__(self, other: PacketCounts) -> PacketCounts:
        """Both together."""
        return PacketCounts(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def values(self) -> dict[str, float]:
        """The values of :data:`testbed.experiment.network_model.PER_FLOW` by name."""
        marked, out_of_order = (
            part / self.packets if self.packets else 0.0 for part in (self.marked, self.out_of_order)
        )
        found = (self.packets, marked, out_of_order, self.held_s, self.victim_s)
        return dict(zip((name for name, _, _ in PER_FLOW), found, strict=True))


class Network(Protocol):
    """Flows in numbered places on the links of a fabric. Sizes are bytes of the scenario, times its seconds."""

    @property
    def number(self) -> Mapping[str, int]:
        """The links, numbered."""
        ...

    def add(self, way: Sequence[str], level: int, slice_size: float = 0.0) -> int:
        """Take a flow in that forwards what comes in by slices of ``slice_size`` bytes; return its place."""
        ...

    def remove(self, place: int) -> None:
        """Forget the flow at ``place``."""
        ...

    def lead_over(self, place: int, way: Sequence[str], *others: Sequence[str]) -> None:
        """Send the flow over the links ``way`` from now on, or its packets over that and ``others`` alike."""
        ...

    def degrade(self, link: str, share: float, loss: float) -> None:
        """Let ``link`` have a ``share`` of its rate from now on, and lose a share ``loss`` of its packets."""
        ...

    def set_level(self, place: int, level: int, until: float = inf) -> None:
        """Serve the flow at ``level``; an event comes when it has sent ``until`` bytes of its message."""
        ...

    def set_limit(self, place: int, bytes_per_s: float) -> None:
        """Let the flow be no faster; infinite for no limit."""
        ...

    def weigh(self, place: int, weights: Sequence[float], period: float) -> None:
        """Let the flow share links of its level by ``weights``, each for an equal part of every ``period`` bytes."""
        ...

    def begin(self, place: int, size: float, lead: float, after: int | None, consumed: float) -> None:
        """Start a message. Past ``lead`` it forwards what ``after`` brings beyond ``consumed`` bytes of its total."""
        ...

    def send(self, place: int, sending: bool) -> None:
        """Let the message flow, or stop it for now."""
        ...

    def sent(self, place: int) -> float:
        """Bytes of the current message that have been sent."""
        ...

    def ended(self, place: int) -> bool:
        """Whether the current message is through."""
        ...

    def total(self, place: int) -> float:
        """Bytes of all messages that are through, and of the current one so far."""
        ...

    def hops(self, place: int) -> int:
        """Links on the way of the flow."""
        ...

    def departure_s(self, job: Job) -> float:
        """Seconds by which the links by which ``job`` leaves its hosts let a burst start ahead of their rate."""
        ...

    def link_is_busy(self, place: int) -> bool:
        """Whether packets wait at the first link of the flow."""
        ...

    def hold_back_s(self, place: int, departure: float) -> float:
        """By how much the message would end earlier than the flow's limit implies if it began after ``departure``."""
        ...

    def run(self, now: float, until: float) -> tuple[float, list[int]]:
        """Go on from ``now`` to the next event, at most to ``until``; return when that is.

        And the places whose message is through or has reached its count of bytes.
        """
        ...

    def counted(self) -> dict[str, float]:
        """What is counted of packets; nothing where there are none at line rate."""
        ...

    def counts_of(self, place: int) -> PacketCounts:
        """What has happened to the packets of a flow; nothing where there are none at line rate."""
        ...

    def take_queues(self) -> dict[tuple[str, int], QueueSample]:
        """(link, level) -> what waits and has waited there, where that is known and not nothing."""
        ...

    def take_bytes(self) -> dict[tuple[str, int], float]:
        """(link, level) -> bytes sent since the last call."""
        ...
