"""Byte streams of a job's flows: what may be sent now, and what has arrived.

A flow is one TCP connection for the life of its job; its messages, one per phase that uses it,
follow each other in the stream. Both ends know every message's length beforehand, so the stream
needs no framing and every byte on the wire is payload.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from itertools import cycle
from math import inf

from workloads.iteration.byte_marks import ByteMarks
from workloads.iteration.byte_windows import ByteWindows
from workloads.iteration.hold import Hold
from workloads.worker.socket_options import head_start, pace, segment_of, set_tos

_TCP_NODELAY = 1
_TCP_INFO = 11
_TCP_WINDOW_CLAMP = 10
BUFFERED_WINDOWS = 4
_MAX_SEND = 1 << 17
"""Bytes that a flow sends before others have their turn. The kernel goes on taking them as long as it can forward what
it has taken: a whole message might keep the worker, and the pauses of its other GPUs, for tenths of a second."""
_ZEROES = memoryview(bytes(_MAX_SEND))
_SCRATCH = bytearray(1 << 20)

_TCP_INFO_TOTAL_RETRANS_OFFSET = 100

_RECEIVES_UNTIL_KNOWN = 16
"""How often a receiver repeats its window's clamp. A kernel (6.18 does) forgets it with the first full packet, from
which it learns how large a connection's packets are; 15 packets of 9000 bytes or 44 of 1500 were in flight then."""


def prepare(connection: socket.socket, window: int) -> None:
    """Options that every connection of a job carries, set before it connects or listens.

    ``window`` bytes in flight at most: equal for all flows, so that flows of one level that share
    a queue share its rate; and small, so that little waits ahead of a change of level. The kernel
    takes a few times that from the sender, so that it is not idle while the worker wakes. 0: as many as congestion
    control allows.
    """
    connection.setsockopt(socket.IPPROTO_TCP, _TCP_NODELAY, 1)
    if not window:
        return
    connection.setsockopt(socket.IPPROTO_TCP, _TCP_WINDOW_CLAMP, window)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFERED_WINDOWS * window)


class TcpSender:
    """The sending side of a flow. ``held``: why nothing may be sent now, if so.

    ``rate``: bytes per second at which the kernel paces it, None for no limit; ``link_rate``: those of its first link.

    ``confirmed``: a message is done when the receiver's notice of its arrival has come, else when the kernel has
    taken it.
    """

    __slots__ = (
        "_confirmed",
        "_sent_again",
        "_word",
        "after",
        "connection",
        "flow",
        "held",
        "lead",
        "link_rate",
        "marks",
        "rate",
        "sent",
        "size",
        "started",
        "tos",
    )

    def __init__(
        self,
        flow: str,
        connection: socket.socket,
        tos: int = 0,
        marks: ByteMarks | None = None,
        *,
        confirmed: bool = False,
        link_rate: float = inf,
    ) -> None:
        self.flow = flow
        self.connection = connection
        self._confirmed = confirmed
        self._word = True
        self.size = 0
        self.sent = 0
        self.lead = 0
        self.after: TcpReceiver | None = None
        self.started = False
        self.held = Hold.NOTHING
        self.rate: float | None = None
        self.link_rate = link_rate
        self.tos = tos
        self.marks = marks
        self._sent_again = 0

    def begin(self, size: int, lead: int, after: TcpReceiver | None) -> None:
        """Start the next message: ``size`` bytes, of which those past ``lead`` wait for the stream ``after``."""
        self.size, self.sent, self.lead, self.after = size, 0, lead, after
        self.started, self._word = True, not self._confirmed or size == 0

    @property
    def done(self) -> bool:
        """Whether the message is complete."""
        return self.started and self._word and self.sent >= self.size

    def hold_back_s(self, departure: float) -> float:
        """By how much a message that began after ``departure`` would end earlier than its rate implies."""
        if not self.rate or not self.size:
            return 0.0
        ahead = head_start(self.size, segment_of(self.connection), self.rate) - departure
        return max(0.0, min(ahead, self.size / self.rate - self.size / self.link_rate))

    def arrived(self) -> None:
        """Record the receiver's notice that the message has arrived."""
        self._word = True

    def send(self, slice_size: int) -> bool:
        """Send what may leave now, ``_MAX_SEND`` bytes at most; return True if the rest is for when there is room."""
        if not self.started or self.held:
            return False
        allowed = self.size
        if self.after is not None:
            forwarded = self.lead + self.after.arrived_whole_slices(slice_size)
            if forwarded < allowed:
                allowed = forwarded
        end = min(allowed, self.sent + _MAX_SEND)
        while self.sent < end:
            limit = end if self.marks is None else min(end, self._mark_by_bytes(self.marks))
            try:
                self.sent += self.connection.send(_ZEROES[: limit - self.sent])
            except BlockingIOError:
                return True
        return end < allowed

    def _mark_by_bytes(self, marks: ByteMarks) -> int:
        """Set the mark of the next byte; return the offset up to which it holds."""
        tos, until = marks.at(self.sent, self.size)
        self.mark(tos)
        return until

    def mark(self, tos: int) -> None:
        """Mark what is sent from now on."""
        if tos != self.tos:
            set_tos(self.connection, tos)
            self.tos = tos

    def move_to(self, connection: socket.socket) -> None:
        """Go on over ``connection``, marked as this stream is; the old one is closed."""
        self._sent_again = self.retransmits()
        self.connection.close()
        self.connection = connection
        pace(connection, self.rate)

    def opened(self) -> None:
        """Record that the connection is open: retransmissions while opening it do not count.

        A request to open that waits for a second behind bursts of higher levels is repeated, and nothing was lost.
        """
        self._sent_again -= self._sent_again_on_connection()

    def retransmits(self) -> int:
        """Segments this flow has sent again since it was opened."""
        return self._sent_again + self._sent_again_on_connection()

    def _sent_again_on_connection(self) -> int:
        info = self.connection.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, 256)
        return int(struct.unpack_from("I", info, _TCP_INFO_TOTAL_RETRANS_OFFSET)[0])


class TcpReceiver:
    """The receiving side of a flow: counts what has arrived, in this message and in all.

    ``sizes`` are those of an iteration's messages, in order: one may be there before this host expects it. The host
    forwards the first bytes of each, ``forwarded``, slice by slice; by default all. Nothing waits for those after them,
    until the last: they are received in batches of about ``window`` bytes. Acknowledgements do not wait for that.
    ``windows``: how much the sender may have in flight, where that depends on the bytes that have arrived.
    """

    __slots__ = (
        "_batch",
        "_clamps_left",
        "_end_of_message",
        "_forwarded",
        "_forwarded_sizes",
        "_plan_window",
        "_sizes",
        "_window",
        "_windows",
        "connection",
        "consumed",
        "flow",
        "lowat",
        "received",
        "size",
    )

    def __init__(
        self,
        flow: str,
        connection: socket.socket,
        sizes: Sequence[int] = (),
        forwarded: Sequence[int] = (),
        window: int = 0,
        windows: ByteWindows | None = None,
    ) -> None:
        self._window, self._windows, self._clamps_left = window, windows, _RECEIVES_UNTIL_KNOWN
        self._sizes = cycle(sizes)
        self._end_of_message = next(self._sizes, 0)
        self._forwarded_sizes = cycle(forwarded)
        self._forwarded = 0
        self._plan_window = window
        # A window that follows the count of bytes is looked at with every slice.
        self._batch = window if windows is None else 0
        self.flow = flow
        self.connection = connection
        self.received = 0
        self.consumed = 0
        self.size = 0
        self.lowat = 1
        self._open_window()

    def begin(self, size: int, slice_size: int) -> None:
        """Expect the next message, of ``size`` bytes; some of it may have arrived already."""
        self.size = size
        # They are forwarded in whole slices: the last of these bytes go on with the slice that they are in.
        self._forwarded = -(-next(self._forwarded_sizes, size) // slice_size) * slice_size
        self._wake_at_next_slice(slice_size)

    @property
    def total(self) -> int:
        """Bytes of all messages that have arrived."""
        return self.received

    @property
    def arrived(self) -> int:
        """Bytes of the current message that have arrived."""
        return min(self.received - self.consumed, self.size)

    @property
    def done(self) -> bool:
        """Whether the current message has arrived whole."""
        return self.received - self.consumed >= self.size

    def arrived_whole_slices(self, slice_size: int) -> int:
        """Arrived bytes of the current message in whole slices; the end of the message counts as one."""
        arrived = self.received - self.consumed
        return self.size if arrived >= self.size else arrived - arrived % slice_size

    def completed(self) -> int:
        """Return how many messages have come to their end since the last call."""
        count = 0
        while 0 < self._end_of_message <= self.received:
            self._end_of_message += next(self._sizes)
            count += 1
        return count

    def finish(self) -> None:
        """Account for the current message and expect nothing until the next begins."""
        self.consumed += self.size
        self.size = 0

    def receive(self, slice_size: int) -> None:
        """Receive what has arrived, without copying it, and ask to be woken at the next whole slice."""
        try:
            count = self.connection.recv_into(_SCRATCH, len(_SCRATCH), socket.MSG_TRUNC)
        except BlockingIOError:
            return
        if count == 0:
            raise ConnectionResetError(f"flow {self.flow} was closed by its sender")
        self.received += count
        self._open_window()
        self._wake_at_next_slice(slice_size)

    def move_to(self, connection: socket.socket) -> None:
        """Go on over ``connection``, waking as this stream does."""
        self.connection = connection
        self._window, self._clamps_left = self._plan_window, _RECEIVES_UNTIL_KNOWN
        self._open_window()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, self.lowat)

    def _open_window(self) -> None:
        """Let as much be in flight as the plan or the count of bytes says; repeat it while the kernel may forget."""
        window = self._plan_window if self._windows is None else self._windows.at(self.received)
        if window and (window != self._window or self._clamps_left):
            self.connection.setsockopt(socket.IPPROTO_TCP, _TCP_WINDOW_CLAMP, window)
            self._window = window
            self._clamps_left = max(0, self._clamps_left - 1)

    def _wake_at_next_slice(self, slice_size: int) -> None:
        # Once a slice: comparisons take half the time of calls of min().
        received = self.received
        arrived = received - self.consumed
        wanted = slice_size - arrived % slice_size
        if self._forwarded <= arrived < self.size and self._batch > wanted:
            wanted = self._batch
        if 0 < self.size - arrived < wanted:
            wanted = self.size - arrived
        if 0 < self._end_of_message - received < wanted:
            wanted = self._end_of_message - received
        if wanted != self.lowat:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, wanted)
            self.lowat = wanted
