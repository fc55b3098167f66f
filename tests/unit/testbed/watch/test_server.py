"""The server of the watch page as the process that it is, asked over the loopback."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from testbed.watch.server import MOST_CONNECTIONS
from testbed.watch.server_process import ServerProcess

PAGE = "<!doctype html><title>Größe</title>"


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    process = ServerProcess(PAGE)
    try:
        yield process
    finally:
        process.close()


def get(server: ServerProcess, path: str = "", method: str = "GET") -> http.client.HTTPResponse:
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(address.netloc, timeout=10)
    connection.request(method, address.path + path)
    return connection.getresponse()


def events(answer: http.client.HTTPResponse, count: int) -> list[tuple[str, str]]:
    """The next ``count`` events of a stream."""
    found = []
    for _ in range(count):
        name, data, _end = (answer.readline().decode().rstrip("\n") for _ in range(3))
        found.append((name.removeprefix("event: "), data.removeprefix("data: ")))
    return found


def test_the_page_is_at_the_address_and_nowhere_else(server: ServerProcess) -> None:
    answer = get(server)
    assert (answer.status, answer.read().decode()) == (200, PAGE)
    assert get(server, "x").status == 404
    assert get(server, method="POST").status == 405
    assert urlsplit(server.url).hostname == "127.0.0.1"


def test_a_page_of_any_size_is_there_from_the_beginning() -> None:
    large = ServerProcess(PAGE * 100_000)
    try:
        assert len(get(large).read().decode()) == 100_000 * len(PAGE)
    finally:
        large.close()


def test_two_servers_have_different_tokens(server: ServerProcess) -> None:
    other = ServerProcess(PAGE)
    other.close()
    tokens = {urlsplit(each.url).path for each in (server, other)}
    assert len(tokens) == 2 and min(map(len, tokens)) > 30


def test_who_listens_gets_what_is_known_and_then_every_event(server: ServerProcess) -> None:
    server.tell("run", {"scheduler": "ecmp"})
    server.tell("sample", {"time_s": 1})
    server.tell("sample", {"time_s": 2})
    get(server).read()  # all that was told before is read by now
    first = get(server, "/events")
    assert events(first, 2) == [("run", '{"scheduler":"ecmp"}'), ("sample", '{"time_s":2}')]
    server.tell("sample", {"time_s": 3})
    assert events(first, 1) == [("sample", '{"time_s":3}')]


def test_a_new_run_makes_the_old_one_forgotten(server: ServerProcess) -> None:
    server.tell("run", {"scheduler": "ecmp"})
    server.tell("sample", {"time_s": 2})
    server.tell("run", {"scheduler": "crux"})
    server.tell("phase", {"phase": "set up"})
    listening = get(server, "/events")
    seen: list[tuple[str, str]] = []
    while ("phase", '{"phase":"set up"}') not in seen:
        seen += events(listening, 1)
    assert seen[-2] == ("run", '{"scheduler":"crux"}')


def test_the_last_event_arrives_before_the_end(server: ServerProcess) -> None:
    listening = get(server, "/events")
    server.tell("ended", {"report": "/runs/report.html"})
    server.close()
    assert events(listening, 1) == [("ended", '{"report":"/runs/report.html"}')]
    assert listening.read() == b""
    with pytest.raises(ConnectionRefusedError):
        get(server)


def test_there_is_an_end_to_how_many_are_served_at_once(server: ServerProcess) -> None:
    address = urlsplit(server.url)
    assert address.hostname is not None and address.port is not None
    place = address.hostname, address.port
    with contextlib.ExitStack() as stack:
        for _ in range(MOST_CONNECTIONS):
            stack.enter_context(socket.create_connection(place))
        one_more = stack.enter_context(socket.create_connection(place, timeout=10))
        with contextlib.suppress(ConnectionResetError):
            assert one_more.recv(100) == b""
    answered = None
    while answered is None:  # until it has seen that they are gone
        with contextlib.suppress(ConnectionError):
            answered = get(server).status
    assert answered == 200


def test_a_head_without_end_is_cut_off(server: ServerProcess) -> None:
    address = urlsplit(server.url)
    with socket.create_connection((address.hostname, address.port), timeout=10) as asking:
        asking.sendall(b"GET / HTTP/1.1\r\n" + b"A: " + b"x" * 20_000)
        try:
            said = asking.recv(100)
        except ConnectionResetError:
            said = b""
        assert said == b""
    assert get(server).status == 200


def test_samples_that_nobody_reads_are_dropped_and_do_not_hold_the_run_up(server: ServerProcess) -> None:
    listening = get(server, "/events")
    os.kill(server.pid, signal.SIGSTOP)
    for number in range(200):
        server.tell("sample", {"number": number, "filling": "x" * 10_000}, may_be_lost=True)
    os.kill(server.pid, signal.SIGCONT)
    server.tell("ended", {"report": None})
    server.close()
    seen = events(listening, 1)
    while seen[-1][0] != "ended":
        seen += events(listening, 1)
    assert seen[-1] == ("ended", '{"report":null}')
    assert 2 <= len(seen) < 200


def test_a_server_that_was_ended_is_not_the_end_of_a_run(server: ServerProcess) -> None:
    os.kill(server.pid, signal.SIGKILL)
    os.waitid(os.P_PID, server.pid, os.WEXITED | os.WNOWAIT)  # a signal takes effect later than kill() returns
    for number in range(3):
        server.tell("sample", {"time_s": number}, may_be_lost=True)
        server.tell("decision", {"time_s": number})
    server.close()
    assert not Path(f"/proc/{server.pid}").exists()
