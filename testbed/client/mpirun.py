"""``python3 -m testbed.client.mpirun [OPTION... --] PROGRAM...``: Open MPI over the hosts of a job, a process on each.

Every host of the job runs this command. On the host of rank 0 it starts ``mpirun``; on the others it waits and starts
what ``mpirun`` asks for, so that each MPI process is in the namespace of its host. The requests go through sockets in
a folder of the job, which all its hosts see; MPI's own connections cross the emulated fabric. Standard library only.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence

_STATUS = struct.Struct("i")
_LONGEST = 1 << 16
_PATIENCE_S = 30.0
_AGAIN_S = 0.02
_QUIT = b"\0quit"
_CONNECT = "--connect"
_INSIDE = "--inside"
_NEEDED = ("TESTBED_ADDRESS", "TESTBED_ADDRESSES", "TESTBED_FOLDER", "TESTBED_INTERFACE", "TESTBED_RANK")
_SELF = [sys.executable, "-m", "testbed.client.mpirun"]


def command(arguments: Sequence[str], addresses: Sequence[str]) -> list[str]:
    """Return the ``mpirun`` command for a process at each of ``addresses``.

    TCP alone; a ring for the allreduce that does not block, as the workers' own.
    """
    settings = {
        "plm": "rsh",
        "plm_rsh_agent": " ".join([*_SELF, _CONNECT]),
        "plm_rsh_no_tree_spawn": "1",
        "orte_leave_session_attached": "1",
        "pml": "ob1",
        "btl": "tcp,self",
        "coll_libnbc_iallreduce_algorithm": "1",
        "mpi_yield_when_idle": "1",
    }
    options = [word for name, value in settings.items() for word in ("--mca", name, value)]
    hosts = ",".join(f"{address}:1" for address in addresses)
    own, program = _divided(arguments)
    fixed = ["mpirun", "--host", hosts, "-np", str(len(addresses)), "--bind-to", "none"]
    return [*fixed, *options, *own, *_SELF, _INSIDE, *program]


def _divided(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The options of ``mpirun``, which end with ``--`` if there are any, and the program."""
    words = list(arguments)
    place = words.index("--") if "--" in words else -1
    return words[: max(0, place)], words[place + 1 :]


def start_inside(program: Sequence[str], environment: Mapping[str, str]) -> None:
    """Become ``program``, an MPI process that uses the interface of its own host: each has another name."""
    own = {"OMPI_MCA_btl_tcp_if_include": environment["TESTBED_INTERFACE"]}
    os.execvpe(program[0], list(program), {**environment, **own})


def place(folder: str, address: str) -> str:
    """Return the socket of the host with ``address``."""
    return os.path.join(folder, f"mpi-{address}")


def serve(path: str) -> int:
    """Start what is asked for at ``path``, one at a time, until told to quit; return the status to end with."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen(8)
        while True:
            connection, _ = listener.accept()
            with connection:
                asked, descriptors, _, _ = socket.recv_fds(connection, _LONGEST, 3)
                if asked == _QUIT:
                    return 0
                connection.send(_STATUS.pack(_run(asked.decode(), descriptors)))


def _run(line: str, descriptors: Sequence[int]) -> int:
    """Run a shell's ``line`` with standard input, output and error as given; return its status."""
    given, said, wrong = descriptors
    try:
        return subprocess.run(["sh", "-c", line], stdin=given, stdout=said, stderr=wrong, check=False).returncode
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def connect(path: str) -> socket.socket:
    """Return a connection to the host that serves at ``path``; it may still be starting."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            connection.connect(path)
            return connection
        except OSError:
            connection.close()
            if time.monotonic() > until:
                raise
            time.sleep(_AGAIN_S)


def start_there(folder: str, address: str, words: Sequence[str]) -> int:
    """Run ``words``, joined as a shell does for ``rsh``, on the host with ``address``; return its status."""
    with connect(place(folder, address)) as connection:
        socket.send_fds(connection, [" ".join(words).encode()], [0, 1, 2])
        answer = connection.recv(_STATUS.size)
    return _STATUS.unpack(answer)[0] if len(answer) == _STATUS.size else 255


def launch(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Start ``mpirun`` on this host, and let the other hosts go when it has ended; return its status."""
    addresses = environment["TESTBED_ADDRESSES"].split(",")
    folder = environment["TESTBED_FOLDER"]
    status = subprocess.run(command(arguments, addresses), stdin=subprocess.DEVNULL, check=False).returncode
    for address in addresses[1:]:
        with connect(place(folder, address)) as connection:
            connection.send(_QUIT)
    return status


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """Act for the host of this process, or as the agent by which ``mpirun`` reaches another."""
    missing = [name for name in _NEEDED if name not in environment]
    if missing:
        print(f"testbed.client.mpirun: {missing[0]} is not set, expected to run as a job of a testbed", file=sys.stderr)
        return 2
    if arguments[:1] == [_CONNECT]:
        return start_there(environment["TESTBED_FOLDER"], arguments[1], arguments[2:])
    if arguments[:1] == [_INSIDE]:
        start_inside(arguments[1:], environment)
    if not arguments:
        print("testbed.client.mpirun: no program, expected: [OPTION... --] PROGRAM...", file=sys.stderr)
        return 2
    if environment["TESTBED_RANK"] == "0":
        return launch(arguments, environment)
    return serve(place(environment["TESTBED_FOLDER"], environment["TESTBED_ADDRESS"]))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:], os.environ))
