"""Sockets of hosts that share a process: each is where it was made, whatever else the process does."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator

import pytest

from workloads.opener.requests import MOST_AT_ONCE, ask, pair, serve
from workloads.worker.namespaces import Namespace

ADDRESS = ("127.0.0.1", 20_100)


@pytest.fixture
def elsewhere() -> Iterator[int]:
    """A process in a network namespace of its own, in which loopback is up."""
    if os.geteuid():
        pytest.skip("only root may enter another namespace")
    ready = "ip link set lo up && echo up && exec sleep 60"
    process = subprocess.Popen(["unshare", "--net", "sh", "-c", ready], stdout=subprocess.PIPE)
    assert process.stdout is not None
    if process.stdout.readline() != b"up\n":
        pytest.skip("no network namespace can be made here")
    yield process.pid
    process.kill()
    process.communicate()


@pytest.fixture
def connection() -> Iterator[socket.socket]:
    """A connection to an opener for the namespace of this process, in a thread of its own."""
    yield from opener(os.getpid())


def opener(*pids: int) -> Iterator[socket.socket]:
    mine, theirs = pair()
    namespaces = [os.open(f"/proc/{pid}/ns/net", os.O_RDONLY) for pid in pids]
    serving = threading.Thread(target=serve, args=([theirs], namespaces))
    serving.start()
    with mine:
        yield mine
    serving.join()
    for descriptor in namespaces:
        os.close(descriptor)


def needs_root() -> None:
    if os.geteuid():
        pytest.skip("only root may enter a namespace")


def listening(made: socket.socket) -> socket.socket:
    made.bind(ADDRESS)
    made.listen()
    return made


def test_hosts_of_one_process_can_have_the_same_address(elsewhere: int) -> None:
    for connection in opener(elsewhere):
        there, here = Namespace(connection, 0), Namespace()
        with listening(there.socket()) as one, listening(here.socket()), there.socket() as caller:
            caller.connect(ADDRESS)
            one.settimeout(5)
            accepted, _ = one.accept()
            accepted.close()


def test_sockets_are_had_one_by_one_or_many_at_once(connection: socket.socket) -> None:
    needs_root()
    namespace = Namespace(connection)
    namespace.prepare(MOST_AT_ONCE + 7)
    made = [namespace.socket() for _ in range(MOST_AT_ONCE + 8)]
    assert len({each.fileno() for each in made}) == MOST_AT_ONCE + 8
    for each in made:
        each.close()


def test_a_namespace_that_cannot_be_entered_is_an_error_in_words() -> None:
    mine, theirs = pair()
    with open(os.devnull) as no_namespace:
        serving = threading.Thread(target=serve, args=([theirs], [no_namespace.fileno()]))
        serving.start()
        with mine, pytest.raises(OSError, match="no socket in another namespace: "):
            ask(mine, 0, 1)
        serving.join()


def test_an_opener_that_has_ended_is_an_error_in_words() -> None:
    mine, theirs = pair()
    theirs.close()
    with mine, pytest.raises(OSError):
        ask(mine, 0, 1)
