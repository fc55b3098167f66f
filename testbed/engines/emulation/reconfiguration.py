"""Carrying a new decision out on jobs that run: path and level in the switches, marks, rates and shifts at the senders.

A new level is marked at once. A flow that moves to another path is held until nothing of it is in
flight and packets follow the new rules, so that no packet takes the way of another's.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Final

from controller.dataplane.planner import FlowChange
from controller.decision import Decision
from testbed.engines.common.worker_plan import (
    byte_marks_of,
    pcie_turns_of,
    time_shift_of,
    tos_of_flows,
    with_port,
)
from testbed.engines.emulation.controller_process import ControllerProcess
from testbed.engines.emulation.workers import WorkerPool
from testbed.experiment.experiment import Experiment
from topologies.addressing import address_of
from workloads.iteration.byte_marks import ByteMarks
from workloads.iteration.protocol import (
    Accepted,
    AssignPcieTurns,
    ExpectFlows,
    Expecting,
    Held,
    HoldFlows,
    MarkByBytes,
    Reconnected,
    ReconnectFlows,
    ResumeFlows,
    ShapeFlows,
    ShiftJob,
)
from workloads.job import Flow, Job

DRAIN_S: Final = 10.0
"""What is in flight of a job that is about to be cut off gets so much time; what is left is lost, and sent again."""


class Reconfiguration:
    """Moves running flows from one decision to the next; ``relevelled`` counts those whose level changed."""

    def __init__(
        self,
        experiment: Experiment,
        controller: ControllerProcess,
        workers: WorkerPool,
        settle: Callable[[], None],
    ) -> None:
        """``settle`` returns when packets follow the rules that switches have confirmed."""
        self._experiment = experiment
        self._settle = settle
        self._controller = controller
        self._workers = workers
        self.relevelled = 0

    async def carry_out(
        self,
        before: Decision,
        decision: Decision,
        changes: Sequence[FlowChange],
        jobs: Iterable[Job],
    ) -> None:
        """Change path and level of the flows named in ``changes`` (the controller's answer); both ends are notified."""
        flows = {flow.id: flow for job in jobs for flow in job.flows}
        staying = [flows[c.flow] for c in changes if c.level_changed and not c.path_changed]
        moving = [flows[c.flow] for c in changes if c.path_changed]
        # Real programs do not hold their bytes back: some of them may overtake others on the new path.
        staying += [flow for flow in moving if flow.two_way]
        moving = [flow for flow in moving if not flow.two_way]
        self.relevelled += sum(change.level_changed for change in changes)
        self._mark([flow for flow in (*staying, *moving) if not flow.two_way], decision)
        await asyncio.gather(self._commit(staying), self._move(moving, before, decision))

    async def _commit(self, flows: list[Flow]) -> None:
        if flows:
            await self._controller.commit([flow.id for flow in flows])
            await asyncio.to_thread(self._settle)

    async def _move(self, flows: list[Flow], before: Decision, after: Decision) -> None:
        """Hold all; whenever some are quiet, change them in the switches together and let them go on."""
        waiting = {asyncio.create_task(self._hold(flow)) for flow in flows}
        while waiting:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            held = [task.result() for task in done]
            reopened = [flow for flow in held if before.ports.get(flow.id) != after.ports.get(flow.id)]
            await asyncio.gather(*(self._reopen(flow, after) for flow in reopened))
            await self._controller.commit([flow.id for flow in held])
            await asyncio.to_thread(self._settle)
            for flow in held:
                self._workers.tell(self._host(flow.source), ResumeFlows((flow.id,)))

    async def _reopen(self, flow: Flow, decision: Decision) -> None:
        """Open a held flow again from the source port that hashes to its new path."""
        fabric, ported = self._experiment.fabric, with_port(flow, decision)
        sender, receiver = self._host(flow.source), self._host(flow.target)
        source, target = address_of(fabric, flow.source), address_of(fabric, flow.target)
        address = (source, ported.source_port, target, flow.target_port)
        self._workers.tell(receiver, ExpectFlows({flow.id: address}))
        await self._workers.expect(Expecting, flow.id, [receiver])
        self._workers.tell(sender, ReconnectFlows({flow.id: ported.source_port}))
        await self._workers.expect(Reconnected, flow.id, [sender])
        await self._workers.expect(Accepted, flow.id, [receiver])

    async def cut_off(self, flows: Iterable[Flow]) -> None:
        """Hold ``flows`` until :meth:`join`; return when nothing of them is in flight, or soon after."""
        held = [asyncio.create_task(self._hold(flow, cut_off=True)) for flow in flows if not flow.two_way]
        if held:
            _, late = await asyncio.wait(held, timeout=DRAIN_S)
            for task in late:
                task.cancel()

    def join(self, flows: Iterable[Flow]) -> None:
        """Let flows that were cut off go on."""
        for flow in flows:
            if not flow.two_way:
                self._workers.tell(self._host(flow.source), ResumeFlows((flow.id,), cut_off=True))

    async def _hold(self, flow: Flow, *, cut_off: bool = False) -> Flow:
        sender = self._host(flow.source)
        self._workers.tell(sender, HoldFlows((flow.id,), cut_off))
        await self._workers.expect(Held, flow.id, [sender])
        return flow

    def _mark(self, flows: list[Flow], decision: Decision) -> None:
        """Tell the sender of each flow its level."""
        by_host: dict[str, dict[str, int]] = {}
        tos = tos_of_flows(decision, tuple(flows), self._experiment.levels)
        for flow in flows:
            by_host.setdefault(self._host(flow.source), {})[flow.id] = tos[flow.id]
        for host, marks in by_host.items():
            self._workers.tell(host, ShapeFlows(time.monotonic(), flow_tos=marks))

    def _host(self, port: str) -> str:
        return self._experiment.fabric.ports[port].host

    # What only the senders carry out

    def tell_rates(self, before: Decision, after: Decision, jobs: Iterable[Job]) -> None:
        """Pace the flows whose rate changes."""
        by_host: dict[str, dict[str, float | None]] = {}
        for flow in (flow for job in jobs for flow in job.flows):
            rate = after.rates.get(flow.id)
            if rate != before.rates.get(flow.id):
                paced = None if rate is None else self._experiment.scale.rate(rate) / 8
                by_host.setdefault(self._host(flow.source), {})[flow.id] = paced
        for host, rates in by_host.items():
            self._workers.tell(host, ShapeFlows(time.monotonic(), rates=rates))

    def tell_pcie_turns(self, before: Decision, decision: Decision, jobs: Iterable[Job]) -> None:
        """Which flows of ``jobs``, all that run, take turns on PCIe links."""
        if not before.exclusive and not decision.exclusive:
            return
        known = list(jobs)
        turns = pcie_turns_of(decision, known, self._experiment.fabric, self._experiment.levels)
        for host in dict.fromkeys(self._host(flow.source) for job in known for flow in job.flows):
            self._workers.tell(host, AssignPcieTurns(turns.get(host, {})))

    def tell_byte_marks(self, before: Decision, after: Decision, jobs: Iterable[Job]) -> None:
        """New thresholds for flows whose level counts bytes."""
        by_host: dict[str, dict[str, ByteMarks | None]] = {}
        for flow in (flow for job in jobs for flow in job.flows):
            if after.byte_levels_of(flow) == before.byte_levels_of(flow):
                continue
            for port in (flow.source, flow.target):
                marks = byte_marks_of(after, flow, self._experiment)
                by_host.setdefault(self._host(port), {})[flow.id] = marks
        for host, flows in by_host.items():
            self._workers.tell(host, MarkByBytes(flows))

    def tell_shift(self, decision: Decision, job: Job, hosts: Iterable[str], anchor: float) -> None:
        """Keep the iterations of ``job`` at the phase that ``decision`` gives it, from ``anchor`` on."""
        time_shift = time_shift_of(decision, job.name, self._experiment.scale, anchor)
        for host in hosts:
            self._workers.tell(host, ShiftJob(job.name, time_shift))


def log_times(what: str, values: dict[str, float]) -> None:
    """Write what took how many seconds to the log of the run."""
    text = ", ".join(f"{name} {value:.3f}" for name, value in values.items())
    with suppress(OSError):  # a full disk ends the run where its record is written, with a line that says so
        print(f"{what}: {text}", file=sys.stderr)
