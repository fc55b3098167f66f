"""Both ends of a flow whose bytes are computed: what a job's program holds in place of sockets."""

from __future__ import annotations

from math import inf

from controller.decision import ByteLevels
from testbed.engines.flow.networks.fluid_network import ROUNDING
from testbed.engines.flow.networks.network import Network
from workloads.iteration.hold import Hold


class FlowReceiver:
    """The receiving end: a message has arrived when all of it was sent and has been on its way for ``latency_s``."""

    def __init__(self, flow: str, network: Network, place: int) -> None:
        self.flow = flow
        self._network = network
        self.place = place
        self.consumed = 0.0
        self._size = 0
        self._arrived = 0.0

    def begin(self, size: int, slice_size: int) -> None:
        """Expect the next message."""
        self._size = size

    def arrive(self, total: float) -> None:
        """Take note that ``total`` bytes of all messages have arrived."""
        self._arrived = total

    @property
    def total(self) -> float:
        """Bytes of all messages that have arrived, and half a byte for rounding."""
        return self._arrived + 0.5

    @property
    def done(self) -> bool:
        """Whether the current message has arrived whole; a byte less is rounding."""
        return self._arrived - self.consumed >= self._size - 0.5

    def finish(self) -> None:
        """Expect nothing until the next message begins."""
        self.consumed += self._size
        self._size = 0


class FlowSender:
    """The sending end. ``byte_levels`` makes its level follow the bytes of the message."""

    def __init__(self, flow: str, network: Network, place: int, level: int) -> None:
        self.flow = flow
        self.held = Hold.NOTHING
        self.started = False
        self.place = place
        self.byte_levels: ByteLevels | None = None
        self.level = level
        self._network = network
        self._size = 0
        self._arrived = False

    def begin(self, size: int, lead: int, after: FlowReceiver | None) -> None:
        """Start the next message, of which what is past ``lead`` forwards what comes in on ``after``."""
        self._size, self.started, self._arrived = size, True, False
        first, consumed = (None, 0.0) if after is None else (after.place, after.consumed)
        self._network.begin(self.place, size, lead, first, consumed)
        self.settle_level()

    @property
    def done(self) -> bool:
        """Whether the message is through."""
        return self.started and self._arrived

    def hold_back_s(self, departure: float) -> float:
        """By how much the message would end earlier than its rate implies if it began after ``departure``."""
        return self._network.hold_back_s(self.place, departure)

    def arrive(self) -> None:
        """Take note that the message has arrived."""
        self._arrived = True

    def send(self, slice_size: int) -> bool:
        """Let the message flow, or stop it where it is held; there is always room."""
        self._network.send(self.place, self.started and not self.held and not self._network.ended(self.place))
        return False

    def settle_level(self) -> None:
        """Take the level that counts now."""
        if self.byte_levels is None:
            self._network.set_level(self.place, self.level)
            return
        counted = self.byte_levels
        sent = self._network.sent(self.place) + 2 * ROUNDING * self._size  # just past a threshold that was reached
        if counted.by == "sent":
            level = counted.level(sent)
            until = counted.thresholds[level] if level < len(counted.thresholds) else inf
        else:
            level = counted.level(self._size - sent)
            until = self._size - counted.thresholds[level - 1] if level > 0 else inf
        self._network.set_level(self.place, level, until)
