"""When messages arrived that their host did not expect yet: several of one flow may be there before that."""

from __future__ import annotations

from collections import deque

from workloads.iteration.endpoints import Receiver


class EarlyArrivals:
    """Notes how many bytes of a flow had arrived when, until the messages that they end are asked for."""

    def __init__(self) -> None:
        self._came: dict[str, deque[tuple[float, float]]] = {}

    def note(self, stream: Receiver, at: float) -> None:
        """Bytes came in on ``stream``, which nobody awaits."""
        self._came.setdefault(stream.flow, deque()).append((stream.total, at))

    def when(self, stream: Receiver, size: int, otherwise: float) -> float:
        """When the next message of ``stream``, of ``size`` bytes, was whole; ``otherwise`` where that is not known."""
        came = self._came.get(stream.flow)
        while came and came[0][0] < stream.consumed + size:
            came.popleft()
        return came[0][1] if came else otherwise
