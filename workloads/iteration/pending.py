"""What the communication of a phase still waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from workloads.iteration.endpoints import Receiver, Sender


@dataclass(slots=True)
class Pending:
    """``streams`` whose messages end one by one, and links inside the host that are busy until ``inside_end``.

    Streams are looked at in order, each until its message has ended: a message that has ended stays so, and a phase of
    thousands of messages is asked thousands of times.
    """

    streams: Sequence[Sender | Receiver]
    inside_end: float
    ended: int = 0
    """Streams at the beginning whose messages have ended."""

    def over(self, now: float) -> bool:
        """Whether all of it has ended by ``now``."""
        while self.ended < len(self.streams) and self.streams[self.ended].done:
            self.ended += 1
        return self.ended == len(self.streams) and now >= self.inside_end
