"""The client of the controller's REST interface: what comes back are the service's own answers."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from controller.dataplane.fake_network import MemoryNetwork
from controller.decision import Measured
from controller.schedulers.registry import create
from controller.service.messages import FabricAnswer, ObservedPathsAnswer, ThroughputAnswer
from controller.service.rest import RestServer
from controller.service.service import Service
from testbed.engines.emulation import controller_process
from testbed.engines.emulation.controller_process import ControllerProcess
from testbed.errors import RunFailedError
from tests.unit.controller.conftest import ring, small

FABRIC = small()
JOB = ring("a", FABRIC, [0, 2])
FLOWS = tuple(flow.id for flow in JOB.flows)


class Plain(BaseHTTPRequestHandler):
    """Answers as the controller's own server does, in an ordinary thread."""

    rest: RestServer

    def _answer(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        response = self.rest.answer(self.command, self.path, lambda: json.loads(raw))
        text = json.dumps(response.body).encode()
        self.send_response(response.status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PUT = do_POST = do_DELETE = _answer

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[ControllerProcess]:
    """A client whose controller serves ``ecmp-switch`` on a network in memory."""
    Plain.rest = RestServer(Service(MemoryNetwork(), create("ecmp-switch")), threading.Lock())
    server = HTTPServer(("127.0.0.1", 0), Plain)
    monkeypatch.setattr(controller_process, "REST_PORT", server.server_port)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield ControllerProcess("ecmp-switch", {}, 8, 1)
    server.shutdown()
    server.server_close()


def test_the_client_returns_the_services_answers(client: ControllerProcess) -> None:
    async def talk() -> None:
        assert await client.set_fabric(FABRIC) == FabricAnswer(FABRIC.name, len(FABRIC.switches))
        await client.wait_for_switches(list(FABRIC.switches))
        arrived = await client.arrive(JOB, prepare=False)
        assert (arrived.decision.hashed, arrived.changes, arrived.confirmed) == (FLOWS, (), True)
        assert await client.tell_throughput({"a": 0.5, "gone": 1.0}) == ThroughputAnswer({"a": 0.5})
        assert (await client.profiled("a", Measured(1e12, 0.5, 2.0))).decision.hashed == FLOWS
        assert (await client.commit(FLOWS)).confirmed
        verified = await client.verification()
        assert (verified.mismatches, verified.rules > 0) == ((), True)
        assert await client.observed_paths() == ObservedPathsAnswer(dict.fromkeys(FLOWS))
        assert (await client.depart("a", prepare=True)).decision.hashed == ()

    asyncio.run(talk())


def test_a_refusal_is_the_controllers_own_line(client: ControllerProcess) -> None:
    with pytest.raises(RunFailedError, match=r"^no fabric yet: PUT /fabric first$"):
        asyncio.run(client.arrive(JOB, prepare=False))


def test_a_controller_that_is_not_there_is_said_to_be_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_process, "REST_PORT", 1)
    with pytest.raises(RunFailedError, match=r"^the controller did not answer GET /verification: "):
        asyncio.run(ControllerProcess("ecmp", {}, 8, 1).verification())
