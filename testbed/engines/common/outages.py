"""Jobs that failures stop: they wait, end after a timeout, and start again from their last checkpoint. Pure.

A job whose ports do not all reach each other waits, as a collective does. If it can communicate before ``timeout_s``
it goes on where it was. Otherwise it ends, as the watchdog of NCCL ends it, and starts again once it can. One whose
host failed has lost its state: it ends after the timeout even if the host is back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from math import inf
from typing import Literal

from testbed.engines.common.managed_jobs import JobsUnderManager
from testbed.experiment.failures import NetworkState, Recovery, unreachable_hosts
from testbed.results.record import IterationRow
from topologies.fabric import Fabric
from workloads.job import Job


@dataclass
class Outage:
    """One time that a job stood still: seconds of the run, and what it cost.

    ``ended_s``: when the timeout ended it, None where it went on by itself; ``until_s``: when it went on or started
    again, None for never. ``repeated``: iterations since the last checkpoint. ``host_failed``: it lost its state.
    """

    job: str
    from_s: float
    host_failed: bool = False
    ended_s: float | None = None
    until_s: float | None = None
    repeated: int = 0


@dataclass(frozen=True, slots=True)
class Action:
    """What an engine does with a job: ``halt`` its processes, ``end`` the attempt, or ``restart`` it."""

    job: str
    what: Literal["halt", "end", "restart"]


@dataclass
class Outages:
    """``rows``: all of them, in order. Times are those that :meth:`changed` and :meth:`due` are called with."""

    recovery: Recovery
    rows: list[Outage] = field(default_factory=list)
    _open: dict[str, Outage] = field(default_factory=dict)
    _stopped: frozenset[str] = frozenset()
    """Jobs that cannot go on now."""

    def changed(self, now_s: float, cut_off: Collection[str], host_failed: Collection[str]) -> list[Action]:
        """Take note of who cannot communicate and whose hosts are down; return what is to be done at once."""
        self._stopped = frozenset({*cut_off, *host_failed})
        for job in sorted(self._stopped - self._open.keys()):
            self._open[job] = Outage(job, now_s)
            self.rows.append(self._open[job])
        halted = [job for job in sorted(host_failed) if not self._open[job].host_failed]
        for job in halted:
            self._open[job].host_failed = True
        for job in [job for job, outage in self._open.items() if job not in self._stopped and not _doomed(outage)]:
            self._open.pop(job).until_s = now_s
        return [*(Action(job, "halt") for job in halted), *self.due(now_s)]

    def due(self, now_s: float) -> list[Action]:
        """What is to be done by ``now_s``."""
        return list(self._due(now_s))

    def _due(self, now_s: float) -> Iterator[Action]:
        for job, outage in list(self._open.items()):
            if self._next_s(outage) > now_s:
                continue
            if outage.ended_s is None:
                outage.ended_s = now_s
                yield Action(job, "end")
            if self._next_s(outage) <= now_s:
                self._open.pop(job).until_s = now_s
                yield Action(job, "restart")

    def next_s(self) -> float:
        """When to call :meth:`due` even if nothing changes; infinite for never."""
        return min((self._next_s(outage) for outage in self._open.values()), default=inf)

    def _next_s(self, outage: Outage) -> float:
        if outage.ended_s is None:
            return outage.from_s + self.recovery.timeout_s
        return inf if outage.job in self._stopped else outage.ended_s + self.recovery.restart_s

    def left(self, job: str, now_s: float) -> None:
        """``job`` is no longer there: a manager has taken it away."""
        outage = self._open.pop(job, None)
        if outage is not None:
            outage.until_s = now_s

    def repeats(self, job: str, completed: int) -> int:
        """Take note that ``job`` ends after so many iterations since it started; return how many it repeats."""
        since = completed % self.recovery.checkpoint_every
        next(outage for outage in reversed(self.rows) if outage.job == job).repeated = since
        return since

    def kept(self, rows: tuple[IterationRow, ...]) -> tuple[IterationRow, ...]:
        """``rows`` in which an iteration that an outage stopped counts: no other one shows what the failure did."""
        return tuple(replace(row, disturbed=False) if row.disturbed and self._stopped_in(row) else row for row in rows)

    def _stopped_in(self, row: IterationRow) -> bool:
        of_job = (outage for outage in self.rows if outage.job == row.job)
        return any(each.from_s < row.end_s and (each.until_s or inf) > row.start_s for each in of_job)


def _doomed(outage: Outage) -> bool:
    return outage.host_failed or outage.ended_s is not None


def is_on_failed_host(job: Job, state: NetworkState, fabric: Fabric) -> bool:
    """Whether a host of ``job`` is down."""
    return any(fabric.host_of_gpu[gpu] in state.hosts for gpu in job.gpus)


@dataclass
class LostHosts:
    """Hosts of which the cluster manager has been told that they are gone."""

    fabric: Fabric
    _told: frozenset[str] = frozenset()

    def tell(self, managed: JobsUnderManager, state: NetworkState, now_s: float, *, lost: bool) -> bool:
        """Tell ``managed`` which hosts a job has ``lost``, and which are back; return whether there are any."""
        out = unreachable_hosts(self.fabric, state)
        leaving, joining = (out - self._told if lost else frozenset()), self._told - out
        self._told = (self._told | leaving) - joining
        if leaving or joining:
            managed.hosts_changed(now_s, sorted(leaving), sorted(joining))
        return bool(leaving or joining)
