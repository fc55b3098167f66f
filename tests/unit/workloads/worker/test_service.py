"""Workers on loopback carry out a job of two hosts: what they are told and what they tell, from set-up to quit."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from workloads.iteration.job_plan import IncomingMessage, JobPlan, OutgoingMessage, PhasePlan, PlannedConnection
from workloads.iteration.protocol import (
    Accepted,
    Closed,
    CloseJob,
    Command,
    Connected,
    ConnectJob,
    Event,
    ExpectFlows,
    Expecting,
    HaltJob,
    Held,
    HoldFlows,
    IterationEnded,
    Listening,
    Quit,
    Ready,
    Reconnected,
    ReconnectFlows,
    ResumeFlows,
    SetUpJob,
    Shaped,
    ShapeFlows,
    StartJob,
    decode_event,
    encode_command,
)

E = TypeVar("E", bound=Event)

ADDRESSES = {f"h{index}": f"127.{os.getpid() >> 8 & 255}.{os.getpid() & 255}.{index + 2}" for index in range(2)}
"""Loopback addresses of this process alone, so that its ports are free."""
PORT = 20_000
SIZE = 50_000


class Worker:
    """The worker of ``host`` as an engine sees it, in a process that may serve other hosts too."""

    def __init__(self, host: str, process: Process) -> None:
        self.host = host
        self.process = process

    def tell(self, command: Command) -> None:
        self.process.tell(self.host, command)

    def hear(self, kind: type[E]) -> E:
        """The next event of ``kind`` on this host; others of it are passed over."""
        while True:
            event = self.process.next_event(self.host)
            if isinstance(event, kind):
                return event


class Process:
    """A worker process with what it has said so far of each of its hosts."""

    def __init__(self, folder: Path, hosts: Sequence[str]) -> None:
        self._said: dict[str, list[Event]] = {host: [] for host in hosts}
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-m", "workloads.worker", str(folder), *hosts],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[4],
        )

    def tell(self, host: str, command: Command) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(encode_command(host, command))
        self.process.stdin.flush()

    def next_event(self, host: str) -> Event:
        assert self.process.stdout is not None
        while not self._said[host]:
            line = self.process.stdout.readline()
            assert line, f"the worker of {host} ended"
            named, event = decode_event(line)
            self._said[named].append(event)
        return self._said[host].pop(0)

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(params=[[["h0"], ["h1"]], [["h0", "h1"]]], ids=["a process each", "one process"])
def workers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dict[str, Worker]]:
    processes = [Process(tmp_path, hosts) for hosts in request.param]
    shared = zip(request.param, processes, strict=True)
    found = {host: Worker(host, process) for hosts, process in shared for host in hosts}
    for worker in found.values():
        worker.hear(Ready)
    yield found
    for process in processes:
        process.end()


def plans() -> dict[str, JobPlan]:
    """A flow each way between two hosts."""
    flows = [
        PlannedConnection("a", ADDRESSES["h0"], PORT, ADDRESSES["h1"], PORT + 1, "h0"),
        PlannedConnection("b", ADDRESSES["h1"], PORT + 2, ADDRESSES["h0"], PORT + 3, "h1"),
    ]
    return {
        host: JobPlan(
            name="job",
            seed=1,
            iterations=1000,
            time_scale=1.0,
            jitter=0.0,
            stragglers=(),
            gpus=(f"{host}g0",),
            phases=(PhasePlan(0.01, 0.0, (OutgoingMessage(mine, SIZE),), (IncomingMessage(others, SIZE),)),),
            outgoing=tuple(flow for flow in flows if flow.flow == mine),
            incoming=tuple(flow for flow in flows if flow.flow == others),
            window=65_536,
            slice_size=20_000,
            departure=0.0,
            link_rate=1e9,
        )
        for host, mine, others in (("h0", "a", "b"), ("h1", "b", "a"))
    }


def test_a_job_comes_runs_changes_and_goes(workers: dict[str, Worker]) -> None:
    for host, plan in plans().items():
        workers[host].tell(SetUpJob(plan))
        assert workers[host].hear(Listening) == Listening("job")
    for worker in workers.values():
        worker.tell(ConnectJob("job"))
    for worker in workers.values():
        assert worker.hear(Connected) == Connected("job")
        worker.tell(StartJob("job", time.monotonic()))
    first, second = (workers["h0"].hear(IterationEnded) for _ in range(2))
    assert (first.iteration, second.iteration) == (0, 1)
    assert second.phases[0].start >= first.phases[0].end
    assert first.phases[0].compute == (0.01,)

    workers["h0"].tell(HoldFlows(("a",)))
    assert workers["h0"].hear(Held) == Held("a")
    workers["h1"].tell(ExpectFlows({"a": (ADDRESSES["h0"], PORT + 4, ADDRESSES["h1"], PORT + 1)}))
    assert workers["h1"].hear(Expecting) == Expecting("a")
    workers["h0"].tell(ReconnectFlows({"a": PORT + 4}))
    assert workers["h0"].hear(Reconnected) == Reconnected("a")
    assert workers["h1"].hear(Accepted) == Accepted("a")
    workers["h0"].tell(ResumeFlows(("a",)))
    workers["h0"].tell(ShapeFlows(1.0, flow_tos={"a": 32}, rates={"a": 50e6}))
    assert workers["h0"].hear(Shaped).caused_at == 1.0
    assert workers["h0"].hear(IterationEnded).iteration > second.iteration

    for worker in workers.values():
        worker.tell(HaltJob("job"))
    for worker in workers.values():
        worker.tell(CloseJob("job"))
        assert worker.hear(Closed).job == "job"
    for worker in {worker.process: worker for worker in workers.values()}.values():
        worker.tell(Quit())
        assert worker.process.process.wait(10) == 0
