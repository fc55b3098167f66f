"""Two worker processes on loopback carry out a job: what they are told and what they tell, from set-up to quit."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
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
    """A worker process as an engine sees it."""

    def __init__(self, folder: Path, host: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-m", "workloads.worker", str(folder), host],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[4],
        )

    def tell(self, command: Command) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(encode_command(command))
        self.process.stdin.flush()

    def hear(self, kind: type[E]) -> E:
        """The next event of ``kind``; others are passed over."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = decode_event(line)
            if isinstance(event, kind):
                return event
        raise AssertionError(f"the worker ended without {kind.__name__}")

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[dict[str, Worker]]:
    found = {host: Worker(tmp_path, host) for host in ADDRESSES}
    for worker in found.values():
        worker.hear(Ready)
    yield found
    for worker in found.values():
        worker.end()


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
        worker.tell(Quit())
        assert worker.process.wait(10) == 0
