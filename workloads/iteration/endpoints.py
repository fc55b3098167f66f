"""The two ends of a flow as a job's program sees them: packets on sockets, or fluids whose rates are computed."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from workloads.iteration.hold import Hold


class Receiver(Protocol):
    """Where the messages of a flow arrive."""

    flow: str

    @property
    def consumed(self) -> float:
        """Bytes of the messages that are finished."""
        ...

    @property
    def done(self) -> bool:
        """Whether the current message has arrived whole."""
        ...

    @property
    def total(self) -> float:
        """Bytes of all messages that have arrived."""
        ...

    def begin(self, size: int, slice_size: int) -> None:
        """Expect the next message, of ``size`` bytes; some of it may have arrived already."""
        ...

    def finish(self) -> None:
        """Account for the current message and expect nothing until the next begins."""
        ...


class Sender(Protocol):
    """Where the messages of a flow leave. ``held``: why nothing may be sent now, if so."""

    held: Hold
    started: bool

    flow: str

    @property
    def done(self) -> bool:
        """Whether the message has arrived."""
        ...

    def hold_back_s(self, departure: float) -> float:
        """By how much a message that began after ``departure`` would end earlier than its rate implies."""
        ...

    def begin(self, size: int, lead: int, after: Any) -> None:
        """Start the next message: ``size`` bytes, those past ``lead`` wait for the :class:`Receiver` ``after``."""
        ...

    def send(self, slice_size: int) -> bool:
        """Send what may leave now; return True if there was no room for all of it."""
        ...


SenderT = TypeVar("SenderT", bound=Sender)
ReceiverT = TypeVar("ReceiverT", bound=Receiver)
