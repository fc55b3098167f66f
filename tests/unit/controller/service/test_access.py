"""Over TCP: pages of a browser get nothing, local processes may read, and who changes something shows the token."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from controller.dataplane.fake_network import MemoryNetwork
from controller.dataplane.ryu_compat import hub
from controller.schedulers.registry import create
from controller.service.json_codec import encode
from controller.service.rest import RestServer, listen_tcp
from controller.service.service import Service
from topologies.fabric import Fabric
from workloads.job import Job

TOKEN = "controller-of-this-test"
JSON = {"Content-Type": "application/json"}
SIGNED = {**JSON, "Authorization": f"Bearer {TOKEN}"}


class Wire:
    """A service on a network in memory, and what comes back over TCP for bytes that are sent to it."""

    def __init__(self, fabric: Fabric, token: str | None = TOKEN) -> None:
        self.service = Service(MemoryNetwork(), create("ecmp"))
        self.service.put_fabric(fabric)
        self._rest = RestServer(self.service, hub.Semaphore(1), token)

    def send(self, raw: bytes) -> tuple[int, dict[str, Any]]:
        """Status and body of the answer to ``raw``, after which the client sends no more."""
        with listen_tcp(0) as listener, socket.create_connection(listener.getsockname()) as client:
            there, _ = listener.accept()
            client.sendall(raw)
            client.shutdown(socket.SHUT_WR)
            self._rest._handle(there)
            head, _, rest = client.makefile("rb").read().partition(b"\r\n\r\n")
        version, status, *_ = head.split()
        assert version.startswith(b"HTTP/1.") and b"Content-Type: application/json" in head
        found = json.loads(rest[: int(head.partition(b"Content-Length: ")[2].split()[0])])
        assert int(status) == 200 or (list(found) == ["error"] and len(found["error"].splitlines()) == 1)
        return int(status), found

    def ask(self, method: str, target: str, headers: dict[str, str], body: object = None) -> tuple[int, dict[str, Any]]:
        text = b"" if body is None else json.dumps(body).encode()
        given = {"Host": "127.0.0.1:8080", "Content-Length": str(len(text)), **headers}
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items() if value), "", ""]
        return self.send("\r\n".join(lines).encode() + text)


@pytest.fixture
def wire(small_fabric: Fabric) -> Wire:
    return Wire(small_fabric)


@pytest.fixture
def arrival(small_fabric: Fabric, make_ring: Callable[..., Job]) -> dict[str, Any]:
    return {"job": encode(make_ring("a", small_fabric, [0, 2]))}


@pytest.mark.parametrize(
    "foreign",
    [
        {"Host": "evil.example", "Origin": "http://evil.example", "Content-Type": "text/plain"},
        {"Origin": "http://evil.example", "Content-Type": "text/plain"},
        {"Host": "evil.example"},
        {"Host": "evil.example:8080"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "localhost:8080", "Origin": "http://localhost:3000"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:8080"},
    ],
)
def test_a_page_of_another_site_changes_and_reads_nothing(
    wire: Wire, arrival: dict[str, Any], foreign: dict[str, str]
) -> None:
    assert wire.ask("POST", "/jobs", {**SIGNED, **foreign}, arrival)[0] == 403
    assert wire.ask("GET", "/state", foreign)[0] == 403
    assert wire.service.get_state().jobs == ()


@pytest.mark.parametrize(
    "local", [{}, {"Host": "localhost"}, {"Host": "localhost:9"}, {"Origin": "http://127.0.0.1:8080"}]
)
def test_a_local_client_is_served(wire: Wire, arrival: dict[str, Any], local: dict[str, str]) -> None:
    assert wire.ask("POST", "/jobs", {**SIGNED, **local}, arrival)[0] == 200
    status, state = wire.ask("GET", "/state", local)
    assert (status, state["jobs"]) == (200, ["a"])


def test_a_request_without_a_host_is_refused(wire: Wire) -> None:
    assert wire.send(b"GET /state HTTP/1.1\r\n\r\n") == (400, {"error": "0 headers Host, expected one"})
    two = b"GET /state HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"
    assert wire.send(two) == (400, {"error": "2 headers Host, expected one"})


@pytest.mark.parametrize("kind", ["text/plain", "", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_body_is_declared_as_json(wire: Wire, arrival: dict[str, Any], kind: str) -> None:
    status, answer = wire.ask("POST", "/jobs", {**SIGNED, "Content-Type": kind}, arrival)
    assert (status, answer["error"]) == (415, f"Content-Type is {kind or 'text/plain'}, expected application/json")
    assert wire.ask("POST", "/jobs", {**SIGNED, "Content-Type": "application/json; charset=utf-8"}, arrival)[0] == 200


@pytest.mark.parametrize("given", ["", "Bearer ", "Bearer wrong", TOKEN, f"Basic {TOKEN}", f"Bearer {TOKEN}x", "\xff"])
@pytest.mark.parametrize(
    ("method", "target"), [("POST", "/jobs"), ("PUT", "/fabric"), ("DELETE", "/jobs/a"), ("POST", "/commit")]
)
def test_a_change_needs_the_token(wire: Wire, arrival: dict[str, Any], given: str, method: str, target: str) -> None:
    before = wire.service.get_state()
    assert wire.ask(method, target, {**JSON, "Authorization": given}, arrival)[0] == 401
    assert wire.service.get_state() == before
    assert wire.ask("GET", "/rules", {})[0] == 200


def test_without_a_token_file_tcp_is_for_reading(small_fabric: Fabric, arrival: dict[str, Any]) -> None:
    wire = Wire(small_fabric, token=None)
    status, answer = wire.ask("POST", "/jobs", {**JSON, "Authorization": "Bearer None"}, arrival)
    assert status == 403 and "--token-file" in answer["error"] and "--rest-socket" in answer["error"]
    assert wire.ask("GET", "/state", {})[0] == 200


LENGTHS = ["²", "-1", "+5", "1_0", "0x10", "1e3", "1, 1", "x", " ", "1" * 5000, "٣"]


@pytest.mark.parametrize("length", LENGTHS)
def test_a_content_length_that_is_none_is_refused_in_one_line(wire: Wire, length: str) -> None:
    head = (
        f"POST /jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
    )
    raw = f"{head}Content-Length: {length}\r\n\r\n{{}}".encode("utf-8" if length == "٣" else "latin-1")
    status, answer = wire.send(raw)
    assert status == (413 if length.isdigit() and length.isascii() else 400)
    assert "Content-Length" in answer["error"] or "larger than" in answer["error"]


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("Content-Length: 2\r\nContent-Length: 2", 400),
        ("Content-Length: 2\r\nContent-Length: 9", 400),
        ("Content-Length: 99", 400),
        (f"Content-Length: {2**40}", 413),
        ("Transfer-Encoding: chunked", 411),
        ("Content-Length: 0", 400),
    ],
)
def test_a_body_of_another_length_than_stated_is_refused(wire: Wire, header: str, status: int) -> None:
    head = f"POST /jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json"
    assert wire.send(f"{head}\r\n{header}\r\n\r\n{{}}".encode())[0] == status


@pytest.mark.parametrize(
    "raw",
    [
        b"GARBAGE\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /state HTTP/9.9\r\n\r\n",
        b"GET /state HTTP/x\r\nHost: localhost\r\n\r\n",
        b"PATCH /state HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /" + b"x" * 70000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /state HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(200)) + b"\r\n",
        b"GET http://[::1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET //[x/state HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /state\r\nHost: evil.example\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused_as_json(wire: Wire, raw: bytes) -> None:
    status, _ = wire.send(raw)
    assert 400 <= status < 500 or (status, raw[:3]) == (505, b"GET")


BODIES = [
    "[" * 200_000,
    '{"a":' * 100_000,
    b"\xff\xfe",
    b"\x00",
    "NaN",
    '{"job": Infinity}',
    "1" * 5000,
    "{",
    "",
    '"\ud800"',
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_a_body_that_is_no_document_of_a_job_is_the_clients_error(wire: Wire, body: str | bytes) -> None:
    raw = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    head = "POST /jobs HTTP/1.1\r\nHost: localhost\r\n" + "".join(
        f"{key}: {value}\r\n" for key, value in SIGNED.items()
    )
    assert wire.send(head.encode() + b"Content-Length: %d\r\n\r\n" % len(raw) + raw)[0] == 400
