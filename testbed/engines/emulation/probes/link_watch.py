"""Whether every link carries while a run goes on: the state of each emulated interface.

The kernel tells of every change (netlink, group ``RTNLGRP_LINK``), so a link that was down for a moment only is seen
too, and looking costs one system call for all namespaces together. A cable is a pair of interfaces: if one is set down
the other has no carrier.
"""

from __future__ import annotations

import errno
import select
import socket
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

from testbed.engines.emulation.probes.netlink import INTERFACE_HEADER, REQUEST_DUMP, RTM_GETLINK
from testbed.errors import RunFailedError
from testbed.fidelity.observations import Change
from topologies.mininet_adapter.netlink_messages import HEADER, packed

State = Literal["carries", "was down", "had no carrier", "was removed"]

_NEW, _GONE = 16, 17
_GROUP: Final = 1
_UP, _LOWER_UP = 1, 0x10000
_LARGEST: Final = 1 << 16
_BUFFER: Final = 1 << 20


class LinkEvents:
    """A netlink socket that hears of the interfaces of the namespace in which it was made."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        self._socket.bind((0, _GROUP))
        self._socket.setblocking(False)
        self._ask()

    def fileno(self) -> int:
        """The socket's descriptor: readable when there is something to :meth:`read`."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _ask(self) -> None:
        """Have the kernel tell the state of every interface, as it tells of changes."""
        body = INTERFACE_HEADER.pack(0, 0, 0, 0, 0, 0)
        self._socket.send(packed(RTM_GETLINK, REQUEST_DUMP, body))

    def read(self) -> Iterator[tuple[int, State]]:
        """(interface, its state) of what has been told since the last call, in order."""
        while True:
            try:
                data = self._socket.recv(_LARGEST)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self._ask()  # too much at once, some of it is lost: what is so now will do
                continue
            yield from states_in(data)


def states_in(data: bytes) -> Iterator[tuple[int, State]]:
    """(interface, its state) of each message about an interface in ``data``."""
    offset = 0
    while offset + HEADER.size <= len(data):
        length, kind = HEADER.unpack_from(data, offset)[:2]
        if kind in (_NEW, _GONE):
            _, _, _, index, flags, _ = INTERFACE_HEADER.unpack_from(data, offset + HEADER.size)
            if kind == _GONE:
                yield index, "was removed"
            elif not flags & _UP:
                yield index, "was down"
            else:
                yield index, "carries" if flags & _LOWER_UP else "had no carrier"
        offset += max(HEADER.size, (length + 3) & ~3)


class LinkStates:
    """What became of links; ``changes`` collects the times in which one did not carry. Pure."""

    def __init__(self) -> None:
        self._looked = 0.0
        self._since: dict[str, tuple[State, float]] = {}
        self._closed: list[Change] = []

    def note(self, now: float, told: Iterable[tuple[str, State]]) -> None:
        """Take in the links and states that were ``told`` between the last call and ``now``, on the run's clock."""
        for link, state in told:
            before = self._since.get(link)
            if before is not None and before[0] == state:
                continue
            if before is not None:
                what, begin = self._since.pop(link)
                self._closed.append(Change("link", begin, now, what, link, lasting=False))
            if state != "carries":
                self._since[link] = state, self._looked
        self._looked = now

    @property
    def changes(self) -> list[Change]:
        """What was found so far."""
        lasting = [Change("link", begin, self._looked, what, link) for link, (what, begin) in self._since.items()]
        return [*self._closed, *lasting]


class LinkWatch:
    """Listens in each namespace; ``places`` has the socket there, and the links by the interface that sends on them."""

    def __init__(self, places: Iterable[tuple[LinkEvents, Mapping[int, str]]]) -> None:
        self._states = LinkStates()
        self._places = {events.fileno(): (events, dict(links)) for events, links in places}
        self._poll = select.epoll()
        for descriptor in self._places:
            self._poll.register(descriptor, select.EPOLLIN)

    def look(self, now: float) -> None:
        """Take note of what has happened until ``now``, on the run's clock."""
        told: list[tuple[str, State]] = []
        for descriptor, _ in self._poll.poll(0, max(1, len(self._places))):
            events, links = self._places[descriptor]
            told += [(links[index], state) for index, state in events.read() if index in links]
        self._states.note(now, told)

    def refuse_removed(self) -> None:
        """Raise ``RunFailedError`` if an interface is gone: it does not come back, and cannot be read back."""
        for change in self._states.changes:
            if change.what == "was removed":
                raise RunFailedError(f"{change.text} while the run needed it")

    @property
    def changes(self) -> list[Change]:
        """What was found so far."""
        return self._states.changes

    def close(self) -> None:
        """Close all sockets."""
        self._poll.close()
        for events, _ in self._places.values():
            events.close()
