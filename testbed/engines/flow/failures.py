"""Failures in a flow cluster: links carry less or nothing, jobs that are cut off wait, end and start again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from math import inf
from typing import Protocol

from controller.decision import LinkDown, LinkUp
from testbed.engines.common.live_jobs import LiveJobs
from testbed.engines.common.managed_jobs import ManagedJobs
from testbed.engines.common.outages import Action, LostHosts, Outages, is_on_failed_host
from testbed.engines.flow.networks.network import Network
from testbed.experiment.experiment import Experiment
from testbed.experiment.failures import Degraded, NetworkState, change_between, part_spans, states
from topologies.fabric import Fabric


class FailingCluster(Protocol):
    """What failures need of the cluster that they happen to."""

    now: float
    jobs: LiveJobs
    managed: ManagedJobs | None

    def at(self, when: float, handler: Callable[[float], None]) -> None:
        """Call ``handler(0)`` at ``when``."""
        ...

    def links_changed(self, left: Fabric, event: LinkDown | LinkUp, cause: str) -> None:
        """Decide on what is left."""
        ...

    def cut_off(self) -> frozenset[str]:
        """Names of jobs that cannot communicate."""
        ...

    def stop(self, name: str) -> None:
        """End the processes of a job, which does not leave."""
        ...

    def restart(self, name: str) -> None:
        """Start a stopped job again."""
        ...

    def manage(self) -> None:
        """Ask the cluster manager, and do what it says."""
        ...


class FlowFailures:
    """Carries the failures of ``experiment`` out on ``cluster``; ``outages`` has what they cost."""

    def __init__(self, cluster: FailingCluster, network: Network, experiment: Experiment) -> None:
        self._cluster, self._network, self._fabric = cluster, network, experiment.fabric
        self.expected = bool(experiment.failures)
        self.outages = Outages(experiment.recovery)
        self._state = NetworkState(-inf)
        self._wakes_s = inf
        self._lost = LostHosts(experiment.fabric)
        self._states = states(experiment.failures, experiment.fabric, experiment.measure.time_limit_s)
        for state in self._states:
            cluster.at(state.at_s, partial(self._change, state))

    def settle(self) -> None:
        """Let jobs wait or go on that the last event has cut off, or joined again."""
        if not self.expected:
            return
        cluster = self._cluster
        jobs = cluster.jobs.present_jobs()
        on_them = [job.name for job in jobs if is_on_failed_host(job, self._state, self._fabric)]
        self._do(self.outages.changed(cluster.now, cluster.cut_off(), on_them))

    def left(self, job: str) -> None:
        """``job`` is no longer there."""
        self.outages.left(job, self._cluster.now)

    def record(self) -> dict[str, object]:
        """What became of jobs, for the run's directory; nothing where nothing was to fail."""
        if not self.expected:
            return {}
        spans = part_spans(self._states, self._cluster.now)
        return {
            "failures": [{"part": part, "failed_s": begin, "restored_s": end} for part, begin, end in spans],
            "outages": [asdict(outage) for outage in self.outages.rows],
        }

    def _change(self, state: NetworkState, _late: float) -> None:
        before, self._state = self._state, state
        for cable in before.degraded.keys() | state.degraded.keys():
            rest = state.degraded.get(cable, Degraded())
            for link in (cable, self._fabric.links[cable].reverse):
                self._network.degrade(link, rest.share, rest.loss)
        if state.down != before.down:
            left = self._fabric.without(sorted(state.down))
            down, up = sorted(state.down - before.down), sorted(before.down - state.down)
            event = LinkDown(down[0], tuple(down[1:])) if down else LinkUp(up[0], tuple(up[1:]))
            self._cluster.links_changed(left, event, change_between(before, state))
        self._tell_manager(lost=False)
        self.settle()

    def _tell_manager(self, *, lost: bool) -> None:
        cluster = self._cluster
        if cluster.managed is not None and self._lost.tell(cluster.managed, self._state, cluster.now, lost=lost):
            cluster.manage()

    def _do(self, actions: Iterable[Action]) -> None:
        for action in actions:
            if action.what == "restart":
                if action.job in self._cluster.jobs and not self._cluster.jobs[action.job].ended:
                    self._cluster.restart(action.job)
                continue
            self._cluster.stop(action.job)
            if action.what == "end":
                live = self._cluster.jobs[action.job]
                live.repeated += self.outages.repeats(action.job, live.completed - live.first)
                self._tell_manager(lost=True)
        if (then_s := self.outages.next_s()) < inf and then_s != self._wakes_s:
            self._wakes_s = then_s
            self._cluster.at(then_s, lambda _late: self._do(self.outages.due(self._cluster.now)))
