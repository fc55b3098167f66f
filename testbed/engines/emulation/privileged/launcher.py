"""``python -m testbed.engines.emulation.privileged.launcher FD``: what needs root, for a process that has none.

Three things can be asked for on the socket FD, whose other end the command has that a user started through sudo: to
try what the kernel can do, to hold the lock that keeps other runs away, and to run an experiment in namespaces of its
own. Nothing that belongs to a user is opened here: files come as descriptors. It ends when nobody can ask any more.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from testbed.engines.emulation.namespaces.sandbox import LOCK, SANDBOX, start
from testbed.machine.capabilities import probe_in_namespace
from testbed.machine.file_lock import FileLock
from testbed.machine.launcher_requests import LARGEST, MOST_DESCRIPTORS, NUMBER

_MARK: Final = re.compile(r"[0-9]{1,20}(-[0-9]{1,20}){2}")


class Launcher:
    """Serves requests of ``connection`` until its other end is closed; what was asked for ends with the asking."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._selector = selectors.DefaultSelector()
        self._selector.register(connection, selectors.EVENT_READ)
        self._held: dict[socket.socket, FileLock | subprocess.Popen[str]] = {}

    def serve(self) -> None:
        """Serve until nobody can ask any more; then end what is still under way."""
        going = True
        while going:
            for key, _ in self._selector.select():
                if key.fileobj is self._connection:
                    going = self._receive()
                elif isinstance(key.data, socket.socket):
                    self._forget(key.data, int(key.fd))
                elif isinstance(key.fileobj, socket.socket):
                    self._end(key.fileobj)
        for life in list(self._held):
            self._end(life)

    def _receive(self) -> bool:
        message, descriptors, _, _ = socket.recv_fds(self._connection, LARGEST, MOST_DESCRIPTORS)
        if not message:
            return False
        if not descriptors:
            return True
        life = socket.socket(fileno=descriptors[0])
        try:
            self._carry_out(json.loads(message), life, descriptors[1:])
        except (ValueError, KeyError, TypeError, OSError) as error:
            print(f"launcher: {error}", file=sys.stderr)
            life.close()
        finally:
            for descriptor in descriptors[1:]:
                os.close(descriptor)
        return True

    def _carry_out(self, message: Mapping[str, Any], life: socket.socket, descriptors: Sequence[int]) -> None:
        match message["what"]:
            case "probe":
                with life:
                    life.sendall(json.dumps(probe_in_namespace([str(name) for name in message["names"]])).encode())
            case "lock":
                lock = FileLock.take(LOCK)
                life.sendall(b"0" if lock is None else b"1")
                self._keep(life, lock)
            case "run":
                self._run(str(message["mark"]), life, descriptors)
            case what:
                raise ValueError(f"'{what}' is nothing that can be asked for")

    def _run(self, mark: str, life: socket.socket, descriptors: Sequence[int]) -> None:
        if not _MARK.fullmatch(mark) or len(descriptors) != 3:
            raise ValueError("a run needs its mark and its three files")
        child = start(SANDBOX, mark, *descriptors)
        self._keep(life, child)
        self._selector.register(os.pidfd_open(child.pid), selectors.EVENT_READ, life)
        with contextlib.suppress(OSError):  # who asked may be gone: then it is ended in the next turn
            life.sendall(NUMBER.pack(child.pid))

    def _keep(self, life: socket.socket, held: FileLock | subprocess.Popen[str] | None) -> None:
        """Hold on to ``held`` until ``life`` is closed at its other end."""
        if held is None:
            life.close()
            return
        self._held[life] = held
        self._selector.register(life, selectors.EVENT_READ)

    def _forget(self, life: socket.socket, ended: int) -> None:
        """The process of a request has ended, as the descriptor ``ended`` says."""
        self._selector.unregister(ended)
        os.close(ended)
        if life in self._held:
            self._end(life)

    def _end(self, life: socket.socket) -> None:
        held = self._held.pop(life, None)
        if isinstance(held, FileLock):
            held.release()
        elif held is not None:
            held.kill()
            with contextlib.suppress(OSError):  # who asked may be gone
                life.sendall(NUMBER.pack(held.wait()))
        if life.fileno() >= 0:
            self._selector.unregister(life)
            life.close()


def main() -> int:
    """Serve the socket that the command line names."""
    with socket.socket(fileno=int(sys.argv[1])) as connection:
        connection.set_inheritable(False)
        Launcher(connection).serve()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
