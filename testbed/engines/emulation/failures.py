"""The failures of a scenario, carried out on the emulated network in their time, and what they do to jobs.

Nobody waits for the network to notice, and nothing on its way is lost: jobs that will be cut off are held, the
scheduler decides on what will be left, flows move, and then the parts fail.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from typing import Final

from controller.reachable_jobs import ReachableJobs, cut_off_jobs
from testbed.engines.common.outages import Action, LostHosts, Outages, is_on_failed_host
from testbed.engines.emulation.cluster import Cluster
from testbed.experiment.experiment import Experiment
from testbed.experiment.failures import Degraded, NetworkState, change_between, states
from testbed.fidelity.observations import Change
from topologies.fabric import Fabric
from topologies.mininet_adapter.failing_parts import FailingParts
from workloads.job import Job

GRACE_S: Final = 1.0
"""The state of an interface is looked at now and then; this much later it still is what was asked for."""


@dataclass
class FailedPart:
    """What became of one: undilated seconds of the run, and seconds of the machine until new rules were in force."""

    part: str
    failed_s: float
    avoided_after_s: float | None = None
    restored_s: float | None = None
    used_after_s: float | None = None


class Failures:
    """Carries the failures of ``experiment`` out on ``cluster``; ``record`` is what became of each part."""

    def __init__(self, cluster: Cluster, parts: FailingParts, experiment: Experiment) -> None:
        self._cluster, self._parts, self._experiment = cluster, parts, experiment
        self._fabric = experiment.fabric
        self._states = states(experiment.failures, experiment.fabric, experiment.measure.time_limit_s)
        self._state = NetworkState(-inf)
        self._cut_off: frozenset[str] = frozenset()
        self._changed = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._lost = LostHosts(experiment.fabric)
        self.outages = Outages(experiment.recovery)
        self.record: list[FailedPart] = []
        if self._states:
            cluster.before_opening, cluster.on_departure = self._make_way, self.left

    async def live(self) -> None:
        """Let parts fail, and come back, in their time."""
        if self._states:
            await asyncio.gather(self._fail(), self._recover())

    async def _fail(self) -> None:
        for state in self._states:
            await asyncio.sleep(max(0.0, self._cluster.seconds_until(state.at_s)))
            async with self._one_at_a_time:
                await self._change(state)
            self._changed.set()

    async def _recover(self) -> None:
        """End jobs after their timeout, and start them again."""
        while True:
            then_s = self.outages.next_s()
            wait_s = None if then_s == inf else max(0.0, self._cluster.seconds_until(then_s))
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), wait_s)
            except TimeoutError:
                async with self._one_at_a_time:
                    await self._do(self.outages.due(then_s))

    async def _change(self, state: NetworkState) -> None:
        before, self._state = self._state, state
        for cable in sorted(before.degraded.keys() | state.degraded.keys()):
            rest = state.degraded.get(cable, Degraded())
            if rest != before.degraded.get(cable, Degraded()):
                await asyncio.to_thread(self._parts.degrade, cable, rest.share, rest.loss)
        down, up = sorted(state.down - before.down), sorted(before.down - state.down)
        cut_off = self._cut_off_now()
        await self._cluster.hold(cut_off - self._cut_off)
        self._note(before, state)
        began = time.monotonic()
        if down:
            await self._decide(down, change_between(before, state), works=False)
            await asyncio.to_thread(self._parts.set_cables, down, up=False)
        if up:
            await asyncio.to_thread(self._parts.set_cables, up, up=True)
            await self._decide(up, change_between(before, state), works=True)
        self._note_seconds(before, state, round(time.monotonic() - began, 4))
        self._cluster.release(self._cut_off - cut_off)
        self._cut_off = cut_off
        self._tell_manager(lost=False)
        await self._do(self.outages.changed(state.at_s, cut_off, self._on_failed_hosts()))

    def _cut_off_now(self) -> frozenset[str]:
        return cut_off_jobs(self._fabric, self._left, self._cluster.jobs.present_jobs())

    def _on_failed_hosts(self) -> list[str]:
        return [job.name for job in self._cluster.jobs.present_jobs() if self._is_on_failed_host(job)]

    def _is_on_failed_host(self, job: Job) -> bool:
        return is_on_failed_host(job, self._state, self._fabric)

    @property
    def _left(self) -> Fabric:
        return self._fabric.without(sorted(self._state.down))

    async def _decide(self, links: Sequence[str], cause: str, *, works: bool) -> None:
        """Decide on what is left; packets leave by the ports of that decision once its rules are there."""
        await self._cluster.decide(
            cause,
            lambda there: there.links_changed(links, down=not works),
            lambda: self._use_ports(self._cluster.jobs.present_jobs()),
        )

    async def _use_ports(self, jobs: Iterable[Job]) -> None:
        await asyncio.to_thread(self._parts.use_ports, other_ports(self._fabric, self._left, jobs))

    async def _make_way(self, job: Job) -> None:
        """Return when ``job``, which is about to open its connections, can communicate and its hosts are up."""
        while cut_off_jobs(self._fabric, self._left, [job]) or self._is_on_failed_host(job):
            await asyncio.sleep(max(0.01, self._experiment.scale.time * 0.01))
        async with self._one_at_a_time:
            await self._use_ports([*self._cluster.jobs.present_jobs(), job])

    async def _do(self, actions: Iterable[Action]) -> None:
        for action in actions:
            live = self._cluster.jobs[action.job]
            if action.what == "restart":
                if live.stopped and not live.ended:  # a real program has been left to itself
                    await self._cluster.restart(live)
                continue
            await self._cluster.stop(live)
            if action.what == "end":
                live.repeated += self.outages.repeats(action.job, live.completed - live.first)
                self._tell_manager(lost=True)

    def _tell_manager(self, *, lost: bool) -> None:
        managed, run = self._cluster.managed, self._cluster.managed_run
        if managed is None or run is None:
            return
        if self._lost.tell(managed, self._state, self._cluster.now(), lost=lost):
            run.wake()

    def _note(self, before: NetworkState, after: NetworkState) -> None:
        now = self._cluster.now()
        self.record += [FailedPart(part, now) for part in sorted(after.parts - before.parts)]
        for row in self._rows_of(before.parts - after.parts):
            row.restored_s = now

    def _note_seconds(self, before: NetworkState, after: NetworkState, seconds: float) -> None:
        for row in self._rows_of(after.parts - before.parts):
            row.avoided_after_s = seconds
        for row in self._rows_of(before.parts - after.parts):
            row.used_after_s = seconds

    def _rows_of(self, parts: Iterable[str]) -> Iterable[FailedPart]:
        """The last row of each part."""
        last = {row.part: row for row in self.record}
        return [last[part] for part in parts if part in last]

    def left(self, job: str) -> None:
        """``job`` is no longer there."""
        self.outages.left(job, self._cluster.now())

    # What the fidelity verdict needs to know

    @property
    def degraded_links(self) -> frozenset[str]:
        """Links whose rate or losses are changed at some time, in both directions."""
        cables = {cable for state in self._states for cable in state.degraded}
        return frozenset(end for cable in cables for end in (cable, self._fabric.links[cable].reverse))

    def unasked(self, changes: Sequence[Change]) -> list[Change]:
        """Those of ``changes`` that the scenario did not ask for; theirs are seconds of the machine."""
        return [change for change in changes if not self._asked(change)]

    def _asked(self, change: Change) -> bool:
        dilation = self._experiment.scale.time
        cable = self._fabric.cable_of.get(change.link or "")
        if change.kind == "setting":  # queues are read back in turns, at last when the run ends
            return change.link in self.degraded_links
        if cable is None or change.kind != "link":
            return False
        for begin, end in _spans(self._states, cable):
            if change.from_s >= begin * dilation - GRACE_S and change.to_s <= end * dilation + GRACE_S:
                return True
        return False

    def documents(self) -> dict[str, list[dict[str, object]]]:
        """What became of each part and of the jobs, for the run's directory; nothing where nothing was to fail."""
        if not self._states:
            return {}
        return {
            "failures": [asdict(each) for each in self.record],
            "outages": [asdict(each) for each in self.outages.rows],
        }


def other_ports(fabric: Fabric, left: Fabric, jobs: Iterable[Job]) -> Mapping[tuple[str, str], str]:
    """Return source and target port -> the port by which packets leave, where that is another one, both directions."""
    ways: dict[tuple[str, str], str] = {}
    reachable = ReachableJobs(fabric, left)
    for job in jobs:
        seen = reachable.job(job)
        for flow, now in zip(job.flows, () if seen is None else seen.flows, strict=seen is not None):
            if now.source != flow.source:
                ways[flow.source, flow.target] = now.source
            if now.target != flow.target:
                ways[flow.target, flow.source] = now.target
    return ways


def _spans(found: Sequence[NetworkState], cable: str) -> list[tuple[float, float]]:
    """When ``cable`` was down: from, until, in seconds of the run."""
    spans: list[tuple[float, float]] = []
    begin: float | None = None
    for state in found:
        active = cable in state.down
        if active and begin is None:
            begin = state.at_s
        elif not active and begin is not None:
            spans.append((begin, state.at_s))
            begin = None
    return [*spans, (begin, inf)] if begin is not None else spans
