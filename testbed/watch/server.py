"""``python -m testbed.watch.server LISTENER EVENTS``: serves the watch page of a run, and knows nothing of it.

Both arguments are descriptors: a socket that listens on the loopback, and one on which the command says what to serve,
a line each: first ``site`` with its token and page, then an event's name and its JSON. It ends when the command does,
however that ends. One thread; it has no privileges. Standard library only: it must start fast.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from typing import Final

from testbed.watch.site import HEAD_BYTES, Answer, Site, event

MOST_CONNECTIONS: Final = 16
HEAD_S: Final = 5.0
"""Within so many seconds a request must be there."""
MOST_WAITING: Final = 1 << 20
"""Bytes that wait for a browser that does not read; with more it is left. It asks again, and gets the present state."""
END_S: Final = 2.0
_LINE: Final = 1 << 26


class Server:
    """Answers with ``site``, and sends events to all who listen; who comes later gets the last one of each name."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._kept: dict[str, str] = {}
        self._listeners: set[asyncio.StreamWriter] = set()
        self._open: set[asyncio.StreamWriter] = set()

    def publish(self, name: str, data: str) -> None:
        """Send an event; ``run`` begins a new run, of which nothing is known yet."""
        if name == "run":
            self._kept.clear()
        self._kept[name] = data
        for writer in list(self._listeners):
            self._send(writer, event(name, data))

    def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(data)
        if writer.transport.get_write_buffer_size() > MOST_WAITING:
            self._listeners.discard(writer)
            writer.transport.abort()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection: one request."""
        if len(self._open) >= MOST_CONNECTIONS:
            writer.transport.abort()
            return
        self._open.add(writer)
        try:
            answer = await self._answer(reader)
            writer.write(answer.head + answer.body)
            if answer.stream:
                await self._stream(reader, writer)
            await writer.drain()
        except (TimeoutError, OSError, EOFError, asyncio.LimitOverrunError):
            pass  # who asks has gone, is too slow, or says too much
        finally:
            self._open.discard(writer)
            self._listeners.discard(writer)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> Answer:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), HEAD_S)
        return self._site.answer(head)

    async def _stream(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send what is known, then what comes, until the other end closes."""
        for name, data in self._kept.items():
            self._send(writer, event(name, data))
        self._listeners.add(writer)
        while await reader.read(HEAD_BYTES):
            pass

    async def end(self) -> None:
        """Close all connections; what was sent gets some time to arrive."""
        for writer in list(self._open):
            writer.close()
        waiting = [asyncio.ensure_future(writer.wait_closed()) for writer in self._open]
        if waiting:
            await asyncio.wait(waiting, timeout=END_S)


async def serve(listener: socket.socket, events: socket.socket) -> None:
    """Serve on ``listener`` what ``events`` says, until its other end is closed."""
    reader, _ = await asyncio.open_connection(sock=events, limit=_LINE)
    _, _, first = (await reader.readline()).decode().partition(" ")
    given = json.loads(first)
    site = Site(listener.getsockname()[1], given["token"], given["page"])
    server = Server(site)
    accepting = await asyncio.start_server(server.connected, sock=listener, limit=HEAD_BYTES)
    while line := await reader.readline():
        name, _, data = line.decode().rstrip("\n").partition(" ")
        server.publish(name, data)
    accepting.close()
    await server.end()


def main() -> int:
    """Serve with the sockets that the command line names."""
    listener, events = (socket.socket(fileno=int(number)) for number in sys.argv[1:3])
    with listener, events:
        asyncio.run(serve(listener, events))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
