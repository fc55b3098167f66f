"""What a program's connections are set to, on sockets of this process in place of those of a command."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from controller.decision import Decision
from testbed import api
from testbed.engines.common.worker_plan import window_packets
from testbed.engines.emulation.external import program as programs
from testbed.engines.emulation.external.processes import Holder
from testbed.engines.emulation.external.program import Program
from testbed.engines.emulation.external.sock_diag import TcpSocket
from topologies.shaping import segment_size, tos_of_level

ENDS = ("h0n0p0", 61000, "h1n0p0", 4000)
SCENARIO = {
    "fabric": {
        "kind": "clos",
        "hosts": 2,
        "gpus_per_host": 2,
        "nics_per_host": 2,
        "tors": 2,
        "aggregations": 1,
        "port_rate": "1Gbps",
        "fabric_rate": "1Gbps",
    },
    "jobs": [
        {"name": "real", "kind": "external", "command": "train", "placement": ["h0:0", "h1:0"], "flops": "1TFLOP"},
        {"name": "other", "model": "bert", "placement": ["h0:1", "h1:1"]},
    ],
    "schedulers": ["ecmp"],
    "scale": {"bandwidth": 100, "time": 1},
}


class Listed:
    """A table of sockets that says what it is told to."""

    def __init__(self) -> None:
        self.sockets: list[TcpSocket] = []

    def read(self) -> list[TcpSocket]:
        return self.sockets

    def close(self) -> None:
        self.sockets = []


@pytest.fixture
def connection() -> Iterator[socket.socket]:
    with socket.socket() as made:
        yield made


@pytest.fixture
def made(
    tmp_path: Path, connection: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> tuple[Program, Listed, api.Prepared]:
    """A program on the first host of which this process holds ``connection``."""
    path = tmp_path / "real.yaml"
    path.write_text(yaml.safe_dump(SCENARIO))
    prepared = api.prepare(path)
    program, table = Program(prepared.jobs[0], prepared.experiments[0]), Listed()
    program.tables["h0"] = table  # type: ignore[assignment]
    monkeypatch.setattr(programs, "sockets_of", lambda _pids: {7: Holder(os.getpid(), connection.fileno())})
    table.sockets = [TcpSocket(2, "10.0.0.1", 61000, "10.0.1.1", 4000, 7)]
    return program, table, prepared


Made = tuple[Program, Listed, api.Prepared]


def test_a_request_to_open_is_told_once_and_the_connection_has_both_directions(made: Made) -> None:
    program, _, _ = made
    assert program.look(1.0)
    assert not program.look(1.1)
    assert {flow.source for flow in program.current().flows} == {"h0n0p0", "h1n0p0"}


def test_sockets_of_others_are_left_alone(made: Made) -> None:
    program, table, _ = made
    table.sockets = [TcpSocket(1, "10.0.0.1", 61000, "10.0.1.1", 4000, 99)]
    assert not program.look(1.0)
    assert program.current().flows == ()


def test_a_connection_that_nobody_lists_any_more_is_forgotten(made: Made) -> None:
    program, table, _ = made
    program.look(1.0)
    table.sockets = []
    assert not program.look(2.0)
    assert program.look(3.1)
    assert program.current().flows == ()


def test_requests_to_open_that_were_repeated_are_no_losses(made: Made) -> None:
    program, table, _ = made
    program.look(1.0)
    for state, again in ((2, 1), (1, 1), (1, 1), (1, 3)):
        table.sockets = [TcpSocket(state, "10.0.0.1", 61000, "10.0.1.1", 4000, 7, retransmits=again)]
        program.look(1.1)
    assert program.close() == 2


def test_a_decision_is_the_mark_on_the_wire(made: Made, connection: socket.socket) -> None:
    program, _, _ = made
    program.look(1.0)
    program.apply(Decision(levels={"real": 3}))
    assert connection.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == tos_of_level(3)


def test_windows_are_those_of_other_jobs(made: Made, connection: socket.socket) -> None:
    program, _, prepared = made
    program.look(1.0)
    window = window_packets(prepared.experiments[0]) * segment_size(prepared.experiments[0].scale.mtu)
    assert connection.getsockopt(socket.IPPROTO_TCP, 10) == window


def test_a_window_that_the_kernel_forgot_is_set_again(made: Made, connection: socket.socket) -> None:
    program, table, prepared = made
    window = window_packets(prepared.experiments[0]) * segment_size(prepared.experiments[0].scale.mtu)
    program.look(1.0)
    for offered, expected in ((window + 1, 4 * window), (4 * window, window)):
        connection.setsockopt(socket.IPPROTO_TCP, 10, 4 * window)
        table.sockets = [TcpSocket(1, "10.0.0.1", 61000, "10.0.1.1", 4000, 7, window=offered)]
        program.look(1.1)
        assert connection.getsockopt(socket.IPPROTO_TCP, 10) == expected
