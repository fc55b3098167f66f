"""What stands on the wire: headers and bodies of answers."""

from __future__ import annotations

import json
import socket

from controller.dataplane.fake_network import MemoryNetwork
from controller.dataplane.ryu_compat import hub
from controller.schedulers.registry import create
from controller.service.rest import RestServer
from controller.service.service import Service
from topologies.fabric import Fabric


def raw_answer(fabric: Fabric, target: str) -> tuple[list[str], object]:
    """Header lines and body of the answer to ``GET target``, as they leave the socket."""
    service = Service(MemoryNetwork(), create("ecmp"))
    service.put_fabric(fabric)
    here, there = socket.socketpair()
    with here:
        here.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        here.shutdown(socket.SHUT_WR)
        RestServer(service, hub.Semaphore(1))._handle(there)
        head, _, body = here.makefile("rb").read().partition(b"\r\n\r\n")
    return head.decode().split("\r\n"), json.loads(body)


def test_a_deprecated_route_says_so_in_a_header(small_fabric: Fabric) -> None:
    lines, body = raw_answer(small_fabric, "/taken")
    assert lines[0] == "HTTP/1.1 200 OK"
    assert "Deprecation: true" in lines
    assert 'Link: </observed-paths>; rel="successor-version"' in lines
    assert body == {"taken": {}}


def test_a_route_under_its_new_name_is_not_deprecated(small_fabric: Fabric) -> None:
    lines, body = raw_answer(small_fabric, "/verification")
    assert not [line for line in lines if line.startswith(("Deprecation", "Link"))]
    assert body == {"mismatches": [], "rules": 0, "packets": {}}


def test_an_unknown_route_is_one_line(small_fabric: Fabric) -> None:
    lines, body = raw_answer(small_fabric, "/nowhere?x=1")
    assert lines[0].startswith("HTTP/1.1 404")
    assert body == {"error": "no resource GET /nowhere"}
