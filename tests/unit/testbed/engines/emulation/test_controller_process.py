"""The client of the controller's REST interface: what comes back are the service's own answers."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from controller.dataplane.fake_network import MemoryNetwork
from controller.decision import Measured
from controller.schedulers.registry import create
from controller.service.messages import FabricAnswer, ObservedPathsAnswer, ThroughputAnswer
from controller.service.rest import RestServer, listen_unix
from controller.service.service import Service
from testbed.engines.emulation.controller_process import ControllerProcess
from testbed.errors import RunFailedError
from tests.unit.controller.conftest import ring, small

FABRIC = small()
JOB = ring("a", FABRIC, [0, 2])
FLOWS = tuple(flow.id for flow in JOB.flows)


def serve(listener: Any) -> None:
    """Answer as the controller does, in an ordinary thread, one connection after the other, until the listener ends."""
    rest = RestServer(Service(MemoryNetwork(), create("ecmp-switch")), threading.Lock())
    with suppress(OSError):
        while True:
            rest._handle(listener.accept()[0])


@pytest.fixture
def client(tmp_path: Path) -> Iterator[ControllerProcess]:
    """A client whose controller serves ``ecmp-switch`` on a network in memory."""
    path = tmp_path / "rest.sock"
    listener = listen_unix(str(path))
    thread = threading.Thread(target=serve, args=(listener,))
    thread.start()
    yield ControllerProcess("ecmp-switch", {}, 8, 1, path)
    listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    listener.close()


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


def test_a_controller_that_is_not_there_is_said_to_be_silent(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match=r"^the controller did not answer GET /verification: "):
        asyncio.run(ControllerProcess("ecmp", {}, 8, 1, tmp_path / "nobody").verification())
