"""CASSINI (NSDI 2024) as far as it concerns jobs that are placed: time-shifts that interleave communication."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from typing import ClassVar

from controller.decision import ClusterView, Decision, Event, Scheduler
from controller.ecmp_hash import ecmp_paths
from controller.schedulers.cassini.affinity_graph import time_shifts, without_loops
from controller.schedulers.cassini.common_periods import common_periods
from controller.schedulers.cassini.link_demand import Demand, demand_of
from controller.schedulers.cassini.shared_links import Meeting, Solved, meetings, parts, rounded, solve
from controller.schedulers.common.kept_by_job import KeptByJob
from topologies.fabric import Fabric
from workloads.job import Job


class Cassini(Scheduler):
    """Shifts jobs in time so that those on one link send while the others compute; no paths, levels or rates.

    Links are those of the ECMP paths. ``step`` is the angle by which a circle is turned, in degrees of
    the circle of the shortest period; ``grid`` the share by which a period may be rounded up so that
    periods have a small common multiple. Raises ``ValueError`` for options out of range.
    """

    name: ClassVar[str] = "cassini"
    summary: ClassVar[str] = "time-shifts that interleave the communication of jobs on shared links"
    decides: ClassVar[tuple[str, ...]] = ("shifts",)
    source: ClassVar[str] = "Rajasekaran et al., NSDI 2024, section 3"

    def __init__(self, *, step: float = 5.0, grid: float = 0.01) -> None:
        self._bins = ceil(360.0 / _checked("step", step, 0.5, 90.0) - 1e-9)
        self._grid = _checked("grid", grid, 0.001, 0.1)
        self._demands = KeptByJob(_demand)

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return a shift, and the period to keep, for every job on a link where shifting helps.

        Shifts count from time 0 of the run, like ``start_s`` of jobs. Of the jobs that links join, the
        one that arrived first is not moved. Jobs that answer requests have no period: they are left out.
        """
        jobs = {name: job for name, job in view.jobs.items() if job.served is None}
        demands = self._demands.of(view.fabric, jobs, view.seed)
        starts_s = {job.name: job.start_s for job in jobs.values()}
        solved, periods_s, left_out = self._settle(meetings(demands), demands, starts_s)
        shifts = time_shifts(list(jobs), [one.edges for one in solved], periods_s, starts_s)
        notes = {
            "profile": "declared",
            "periods": {job: {"alone_s": demands[job].iteration_s, "kept_s": periods_s[job]} for job in shifts},
            "links": [one.note("used") for one in solved] + left_out,
        }
        return Decision(shifts=shifts, periods={job: periods_s[job] for job in shifts}, notes=notes)

    def _settle(
        self, found: Sequence[Meeting], demands: Mapping[str, Demand], starts_s: Mapping[str, float]
    ) -> tuple[list[Solved], dict[str, float], list[dict[str, object]]]:
        """The meetings where shifting helps, without loops; the periods that this takes; notes on the others.

        First every meeting by itself, so that one that nothing can help does not lengthen the perimeter of
        the rest. Then those that jobs join, together; again as long as one of them turns out to gain nothing.
        """
        solved, _ = self._solve([(meeting,) for meeting in found], demands, starts_s)
        left_out = [one.note("no gain") for one in solved if not one.helps]
        remaining = [one.meeting for one in solved if one.helps]
        while True:
            solved, periods_s = self._solve(parts(remaining), demands, starts_s)
            helpful = [one for one in solved if one.helps]
            kept_links, _ = without_loops(one.edges for one in helpful)
            names = {link.name for link in kept_links}
            kept = [one for one in helpful if one.edges.name in names]
            left_out += [one.note("no gain") for one in solved if not one.helps]
            left_out += [one.note("closes a loop") for one in helpful if one.edges.name not in names]
            if len(kept) == len(solved):
                return kept, periods_s, left_out
            remaining = [one.meeting for one in kept]

    def _solve(
        self, groups: Iterable[Sequence[Meeting]], demands: Mapping[str, Demand], starts_s: Mapping[str, float]
    ) -> tuple[list[Solved], dict[str, float]]:
        """Every meeting with its best turns, and the rounded periods of the jobs: common ones in each group."""
        solved: list[Solved] = []
        periods_s: dict[str, float] = {}
        for group in groups:
            jobs = dict.fromkeys(job for meeting in group for job in meeting.jobs)
            alone_s = {job: demands[job].iteration_s for job in jobs}
            common = common_periods(alone_s, [meeting.jobs for meeting in group], self._grid)
            solved += [solve(meeting, common, starts_s, self._bins) for meeting in group]
            periods_s |= {job: common.period_s(job) for job in jobs}
        return solved, periods_s


def _demand(fabric: Fabric, job: Job, seed: int) -> Demand:
    return rounded(demand_of(job, fabric, ecmp_paths(fabric, job.flows, seed)))


def _checked(option: str, value: object, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ValueError(f"option '{option}' of cassini must be a number from {least:g} to {most:g}, not '{value}'")
    return float(value)
