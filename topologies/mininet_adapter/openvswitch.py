"""An Open vSwitch of the run's own: database, daemon and sockets in a directory that goes with the run."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from topologies.mininet_adapter.ovsdb import Database, set_up
from topologies.mininet_adapter.system import CommandError, run_command
from topologies.mininet_adapter.unixctl import call, listens

SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
SEND_BUFFER = 256 << 20
"""Bytes. All userspace ports send through one AF_PACKET socket, and what waits in any egress queue counts
against its buffer: if it is too small, a full queue on one port drops packets of every port."""

MAX_IDLE_MS = 86_400_000
"""The cache keeps an entry until no packet has used it for this long. After the usual 10 s the first packet of a burst
takes the slow path, and those behind it overtake it."""

MAX_REVALIDATOR_MS = 100
"""The cache is checked against the tables at least so often, and at once when they change. Whoever waits for a check
that is just over waits for the next one: with the usual 500 ms a moved flow was held for half a second."""

_SYS_PIDFD_OPEN = 434
_SYS_PIDFD_GETFD = 438
_SO_DOMAIN = 39
_SO_SNDBUFFORCE = 32
_SO_RCVBUFFORCE = 33
_LIBC = ctypes.CDLL(None, use_errno=True)


class OpenVSwitch:
    """``ovsdb-server`` and ``ovs-vswitchd`` as children of this process, in ``directory``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environment = dict(
            os.environ, OVS_RUNDIR=str(directory), OVS_DBDIR=str(directory), OVS_LOGDIR=str(directory)
        )
        self._children: list[subprocess.Popen[bytes]] = []

    @property
    def daemon_pid(self) -> int:
        """Process id of ``ovs-vswitchd``."""
        return self._children[-1].pid

    @property
    def watched(self) -> dict[str, int]:
        """Name and process id of the daemon that carries out what is asked of it, once it is there."""
        return {"ovs-vswitchd": self.daemon_pid} if self._children else {}

    def start(self, options: Sequence[str] = ()) -> None:
        """Start both daemons and wait until the database answers; ``CommandError`` if they do not come up.

        ``options`` are arguments of ``ovs-vswitchd``.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        database = self.directory / "conf.db"
        run_command(["ovsdb-tool", "create", str(database), str(SCHEMA)])
        address = self.directory / "db.sock"
        self._spawn(["ovsdb-server", str(database), f"--remote=punix:{address}"])
        self._wait_for(address)
        cache = {"max-idle": str(MAX_IDLE_MS), "max-revalidator": str(MAX_REVALIDATOR_MS)}
        with self.database() as opened:
            opened.transact(set_up(cache))
        self._spawn(["ovs-vswitchd", f"unix:{address}", f"--pidfile={self.directory}/ovs-vswitchd.pid", *options])

    def _spawn(self, command: Sequence[str]) -> None:
        log = self.directory / f"{command[0]}.log"
        arguments = [*command, "--no-chdir", "-vconsole:off", f"--log-file={log}"]
        try:
            child = subprocess.Popen(
                arguments,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise CommandError(f"{command[0]}: {error}") from error
        self._children.append(child)

    def _wait_for(self, path: Path) -> None:
        deadline = time.monotonic() + 10
        while not listens(path):
            if self._children[-1].poll() is not None or time.monotonic() > deadline:
                raise CommandError(f"{self._children[-1].args!r} did not come up")
            time.sleep(0.002)

    def database(self) -> Database:
        """Return a connection to the database, for a ``with`` statement."""
        return Database(self.directory / "db.sock")

    def call(self, method: str, *parameters: str) -> str:
        """Have the daemon carry out a command of its control socket, as ``ovs-appctl`` does; return its answer."""
        return call(self.directory / f"ovs-vswitchd.{self.daemon_pid}.ctl", method, parameters)

    def enlarge_buffers(self) -> int:
        """Give the daemon's AF_PACKET sockets room for every queue of the fabric; return how many there were.

        The daemon makes its sending socket with its first packet, so call this after one has been
        sent. The sockets are borrowed through ``pidfd_getfd``: the system-wide default
        ``net.core.wmem_default`` stays as it is.
        """
        found = 0
        for borrowed in _sockets_of(self.daemon_pid):
            if borrowed.getsockopt(socket.SOL_SOCKET, _SO_DOMAIN) == socket.AF_PACKET:
                borrowed.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, SEND_BUFFER)
                borrowed.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, SEND_BUFFER)
                found += 1
        return found

    def ended(self) -> str | None:
        """Which daemon has ended, and how, in words; None as long as both are there."""
        for name, child in zip(("ovsdb-server", "ovs-vswitchd"), self._children, strict=False):
            status = child.poll()
            if status is not None:
                how = f"by signal {-status}" if status < 0 else f"with status {status}"
                return f"{name} ended {how} while the run needed it"
        return None

    def stop(self) -> None:
        """End both daemons, by their own process ids."""
        for child in reversed(self._children):
            child.kill()
        for child in self._children:
            child.wait()
        self._children.clear()


def _sockets_of(pid: int) -> Iterator[socket.socket]:
    """Duplicates of the sockets of process ``pid``, each closed again after its turn."""
    process = _LIBC.syscall(_SYS_PIDFD_OPEN, pid, 0)
    if process < 0:
        raise OSError(ctypes.get_errno(), f"pidfd_open of process {pid}")
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            if not _is_socket(entry):
                continue
            descriptor = _LIBC.syscall(_SYS_PIDFD_GETFD, process, int(entry.name), 0)
            if descriptor >= 0:
                with socket.socket(fileno=descriptor) as borrowed:
                    yield borrowed
    finally:
        os.close(process)


def _is_socket(entry: Path) -> bool:
    try:
        return str(entry.readlink()).startswith("socket:")
    except OSError:
        return False
