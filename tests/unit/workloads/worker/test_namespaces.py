"""Sockets of hosts that share a process: each is where it was made, whatever else the process does."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator

import pytest

from workloads.worker.namespaces import Namespaces

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


def listener() -> socket.socket:
    made = socket.socket()
    made.bind(ADDRESS)
    made.listen()
    return made


def test_hosts_of_one_process_can_have_the_same_address(elsewhere: int) -> None:
    namespaces = Namespaces()
    with namespaces.of(elsewhere).inside():
        there = listener()
    with namespaces.of(None).inside():
        here = listener()
    with there, here, namespaces.of(elsewhere).inside(), socket.socket() as caller:
        caller.connect(ADDRESS)
        there.settimeout(5)
        accepted, _ = there.accept()
        accepted.close()


def test_the_process_is_back_in_its_own_namespace_afterwards(elsewhere: int) -> None:
    before = os.stat("/proc/self/ns/net").st_ino
    with pytest.raises(RuntimeError), Namespaces().of(elsewhere).inside():
        assert os.stat("/proc/self/ns/net").st_ino == os.stat(f"/proc/{elsewhere}/ns/net").st_ino != before
        raise RuntimeError
    assert os.stat("/proc/self/ns/net").st_ino == before
