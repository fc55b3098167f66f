"""Starts the server of the watch page, without privileges, and tells it events; a run never waits for it."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
from typing import Final

from testbed.errors import RunFailedError
from testbed.machine.child_python import module_path, python_module
from testbed.machine.ownership import MARK, own_mark
from testbed.machine.privileges import plain_user, unprivileged

_LOOPBACK: Final = "127.0.0.1"
_TOKEN_BYTES: Final = 24
_START_S: Final = 30.0
_END_S: Final = 5.0


class ServerProcess:
    """Serves ``page`` at :attr:`url`, on a free port of the loopback, until it is closed."""

    def __init__(self, page: str) -> None:
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        with socket.create_server((_LOOPBACK, 0)) as listener:
            self.url = f"http://{_LOOPBACK}:{listener.getsockname()[1]}/{token}"
            self._socket, theirs = socket.socketpair()
            with theirs:
                self._process = _start(listener.fileno(), theirs.fileno())
        self._rest = bytearray()
        # Over the socket and not as an argument, which every user of the machine could read.
        self._begin(_line("site", {"token": token, "page": page}))

    def _begin(self, site: bytes) -> None:
        """Wait until the server has read its page, which is larger than the socket holds: no run goes on yet."""
        try:
            self._socket.settimeout(_START_S)
            self._socket.sendall(site)
            self._socket.setblocking(False)
        except OSError as error:
            self.close()
            raise RunFailedError(f"the server of the watch page does not start: {error}") from error

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def tell(self, name: str, document: object, *, may_be_lost: bool = False) -> None:
        """Send an event; one that ``may_be_lost`` only if the server has read those before."""
        self._flush()
        if may_be_lost and self._rest:
            return
        self._rest += _line(name, document)
        self._flush()

    def _flush(self) -> None:
        # A server that has ended is not the end of the run.
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            while self._rest:
                del self._rest[: self._socket.send(self._rest)]

    def close(self) -> None:
        """End it, when it has passed on what it was told."""
        with contextlib.suppress(OSError):
            self._socket.settimeout(_END_S)
            self._socket.sendall(self._rest)
        self._socket.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _line(name: str, document: object) -> bytes:
    return f"{name} {json.dumps(document, allow_nan=False, separators=(',', ':'))}\n".encode()


def _start(listener: int, events: int) -> subprocess.Popen[bytes]:
    command = python_module("testbed.watch.server", str(listener), str(events), site=False)
    return subprocess.Popen(
        unprivileged(command, plain_user()),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": module_path(), MARK: own_mark()},
        pass_fds=[listener, events],
        cwd="/",
        start_new_session=True,  # Ctrl-C is for the command, which tells what became of the run
    )
