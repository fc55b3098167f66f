"""Which flow may send on the PCIe links of this host: the semaphores of Crux (section 5).

One worker drives all jobs of a host, so a semaphore needs no more than this table. A flow waits while
one of a smaller rank (its job's level) has an unfinished message to send over the same link. What is
already in the kernel goes out; nothing follows until the link is free.

No flow can wait for ever: a flow waits only for flows of smaller rank, never for its own job or its
equals, and no byte of a job waits for another job. So the messages of the smallest rank end; those of
the next rank then wait for no unfinished message; and so on. For the same reason a flow that may
not send for another cause (its path changes, its rate is 0) does not keep the link: that cause may
itself end only after others have sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import Generic

from workloads.iteration.endpoints import SenderT
from workloads.iteration.hold import Hold

PciePlace = tuple[str, int]
"""A link and a rank on it, 0 first."""


class PcieSemaphore(Generic[SenderT]):
    """Holds and frees streams; ``resume`` is called with a stream that may go on."""

    def __init__(self, resume: Callable[[SenderT], None]) -> None:
        self._resume = resume
        self._places: dict[str, PciePlace] = {}
        self._sending: dict[str, SenderT] = {}

    def assign(self, places: Mapping[str, PciePlace]) -> None:
        """Let flows keep to ``places`` from now on; those that have none wait for no other flow."""
        links = dict.fromkeys(link for link, _ in (*self._places.values(), *places.values()))
        self._places = dict(places)
        free = [stream for flow, stream in self._sending.items() if flow not in places]
        self._go_on(free)
        for link in links:
            self._settle(link)

    def began(self, streams: Iterable[SenderT]) -> None:
        """Take note that messages of ``streams`` begin."""
        begun = list(streams)
        self._sending.update((stream.flow, stream) for stream in begun)
        for link in dict.fromkeys(self._places[stream.flow][0] for stream in begun if stream.flow in self._places):
            self._settle(link)

    def sent(self, stream: SenderT) -> None:
        """Take note that the message of ``stream`` has been sent."""
        self.left([stream.flow])

    def left(self, flows: Iterable[str]) -> None:
        """Take note that ``flows`` send nothing more for now."""
        gone = [flow for flow in flows if self._sending.pop(flow, None) is not None]
        for flow in gone:
            self.changed(flow)

    def changed(self, flow: str) -> None:
        """Look again at the link of ``flow``: it has ended, or is held or free for another reason."""
        if flow in self._places:
            self._settle(self._places[flow][0])

    def _settle(self, link: str) -> None:
        """Those of the smallest rank that could send go on, the others wait."""
        ranked = [
            (self._places[flow][1], stream)
            for flow, stream in self._sending.items()
            if flow in self._places and self._places[flow][0] == link
        ]
        first = min((rank for rank, stream in ranked if not stream.held & ~Hold.PCIE_TURN), default=inf)
        for rank, stream in ranked:
            if rank > first:
                stream.held |= Hold.PCIE_TURN
        self._go_on(stream for rank, stream in ranked if rank <= first)

    def _go_on(self, streams: Iterable[SenderT]) -> None:
        freed = [stream for stream in streams if stream.held & Hold.PCIE_TURN]
        for stream in freed:
            stream.held &= ~Hold.PCIE_TURN
        for stream in freed:
            self._resume(stream)
