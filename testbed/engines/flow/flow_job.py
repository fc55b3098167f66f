"""A job of the flow engine: what carries it out."""

from __future__ import annotations

from dataclasses import dataclass, field

from testbed.engines.common.live_jobs import LiveJob
from testbed.engines.flow.streams import FlowReceiver, FlowSender
from workloads.iteration.program import JobProgram
from workloads.job import Job

Program = JobProgram[FlowSender, FlowReceiver]


@dataclass
class FlowJob:
    """What carries a job out: a program for each of its hosts, and both ends of its flows."""

    live: LiveJob
    programs: dict[str, Program] = field(default_factory=dict)
    out: dict[str, FlowSender] = field(default_factory=dict)
    into: dict[str, FlowReceiver] = field(default_factory=dict)

    @property
    def job(self) -> Job:
        """The job."""
        return self.live.job

    def forget(self) -> None:
        """Nothing carries it out any more."""
        self.programs.clear()
        self.out.clear()
        self.into.clear()
