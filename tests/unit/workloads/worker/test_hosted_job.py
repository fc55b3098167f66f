"""Jobs of one host share its links."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from workloads.iteration.job_plan import PlannedConnection
from workloads.worker.hosted_job import HostedJob, link_is_busy
from workloads.worker.tcp_endpoints import TcpSender

LINKS = ("10.0.0.1", "10.0.0.2")
MakeJob = Callable[..., HostedJob]


@pytest.fixture
def job_with() -> Iterator[MakeJob]:
    """Make a job that sends a flow of each name over a link (flow -> address); no end of them takes anything."""
    ends: list[socket.socket] = []

    def make(**links: str) -> HostedJob:
        planned = [PlannedConnection(flow, link, 1, "10.0.9.9", 2, "h9") for flow, link in links.items()]
        pairs = {flow: socket.socketpair() for flow in links}
        ends.extend(end for pair in pairs.values() for end in pair)
        program = SimpleNamespace(out={flow: TcpSender(flow, pair[0], confirmed=True) for flow, pair in pairs.items()})
        return HostedJob(SimpleNamespace(name="job", incoming=(), outgoing=planned), program)  # type: ignore[arg-type]

    yield make
    for end in ends:
        end.close()


def send(job: HostedJob, flow: str) -> TcpSender:
    stream = job.program.out[flow]
    stream.begin(100, 100, None)
    stream.send(100)
    return stream


def test_a_link_is_busy_while_a_message_of_another_flow_waits_there(job_with: MakeJob) -> None:
    mine, other = job_with(a=LINKS[0]), job_with(b=LINKS[0])
    assert not link_is_busy(mine, "a", [mine, other])
    stream = send(other, "b")
    assert link_is_busy(mine, "a", [mine, other])
    stream.arrived()  # its message is over
    assert not link_is_busy(mine, "a", [mine, other])


def test_neither_another_link_nor_the_flow_itself_makes_a_link_busy(job_with: MakeJob) -> None:
    mine, other = job_with(a=LINKS[0], c=LINKS[1]), job_with(b=LINKS[1])
    send(other, "b")
    send(mine, "a")
    assert not link_is_busy(mine, "a", [mine, other])
    assert link_is_busy(mine, "c", [mine, other])
