"""The links of CASSINI's affinity graph: which jobs contend on which links, and their best turns there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import gcd
from typing import Final

from controller.schedulers.cassini.affinity_graph import SharedLink
from controller.schedulers.cassini.common_periods import CommonPeriods
from controller.schedulers.cassini.link_demand import Arc, Demand
from controller.schedulers.cassini.unified_circle import OnCircle, Turned, turned

LEAST_GAIN: Final = 0.001
"""What shifting must add to a link's score: less than that is lost among the bins, while keeping a period costs."""


@dataclass(frozen=True)
class Meeting:
    """Jobs (in order of arrival) that together can ask more of a link than it carries, and what each asks.

    ``links``: all links on which the same jobs ask the same; one circle stands for all of them.
    """

    asked: Mapping[str, tuple[Arc, ...]]
    links: tuple[str, ...]

    @cached_property
    def jobs(self) -> tuple[str, ...]:
        """The jobs that contend."""
        return tuple(self.asked)


@dataclass(frozen=True)
class Solved:
    """A meeting with its best turns; ``copies`` of each job's period make the perimeter (seconds)."""

    meeting: Meeting
    copies: tuple[int, ...]
    perimeter_s: float
    turned: Turned

    @property
    def helps(self) -> bool:
        """Whether shifting beats not shifting."""
        return self.turned.score > self.turned.unshifted + LEAST_GAIN

    @property
    def edges(self) -> SharedLink:
        """The link of the affinity graph, with t_j^l on its edges."""
        rows = zip(self.meeting.jobs, self.turned.turns, self.copies, strict=True)
        turns_s = {job: turn * self.perimeter_s / copies for job, turn, copies in rows}
        return SharedLink(self.meeting.links[0], turns_s, self.turned.unshifted)

    def note(self, use: str) -> dict[str, object]:
        """What goes on record, JSON-ready."""
        return {
            "link": self.meeting.links[0],
            "links": len(self.meeting.links),
            "jobs": list(self.meeting.jobs),
            "copies": list(self.copies),
            "perimeter_s": self.perimeter_s,
            "unshifted": self.turned.unshifted,
            "score": self.turned.score,
            "use": use,
        }


def rounded(demand: Demand) -> Demand:
    """Return ``demand`` with shares that are equal but for the last bits made equal."""
    arcs = {
        link: tuple(Arc(arc.begin_s, arc.end_s, round(arc.share, 9)) for arc in found)
        for link, found in demand.arcs.items()
    }
    return Demand(demand.iteration_s, arcs)


def meetings(demands: Mapping[str, Demand]) -> tuple[Meeting, ...]:
    """Return where jobs (job -> its :func:`rounded` demand, in order of arrival) can ask more than a link carries."""
    asked: dict[str, dict[str, tuple[Arc, ...]]] = {}
    for job, demand in demands.items():
        for link, arcs in demand.arcs.items():
            asked.setdefault(link, {})[job] = arcs
    links: dict[tuple[tuple[str, tuple[Arc, ...]], ...], list[str]] = {}
    for link, jobs in asked.items():
        if sum(max(arc.share for arc in arcs) for arcs in jobs.values()) > 1 + 1e-6:
            links.setdefault(tuple(jobs.items()), []).append(link)
    return tuple(Meeting(dict(key), tuple(found)) for key, found in links.items() if len(key) > 1)


def parts(found: Iterable[Meeting]) -> tuple[tuple[Meeting, ...], ...]:
    """Return ``found`` in groups: those that a chain of jobs joins are together."""
    groups: list[tuple[set[str], list[Meeting]]] = []
    for meeting in found:
        jobs, together = set(meeting.jobs), [meeting]
        apart = []
        for others, meetings_of_others in groups:
            if jobs.isdisjoint(others):
                apart.append((others, meetings_of_others))
            else:
                jobs |= others
                together = meetings_of_others + together
        groups = [*apart, (jobs, together)]
    return tuple(tuple(together) for _, together in groups)


def solve(meeting: Meeting, common: CommonPeriods, starts_s: Mapping[str, float], bins: int) -> Solved:
    """Return ``meeting`` with its best turns, from ``starts_s`` (job -> seconds) where nothing is shifted."""
    repeats = gcd(*(common.copies[job] for job in meeting.jobs))
    copies = tuple(common.copies[job] // repeats for job in meeting.jobs)
    jobs = []
    for job, count in zip(meeting.jobs, copies, strict=True):
        period_s = common.period_s(job)
        arcs = tuple((arc.begin_s / period_s, arc.end_s / period_s, arc.share) for arc in meeting.asked[job])
        jobs.append(OnCircle(count, arcs, starts_s.get(job, 0.0) / period_s % 1.0))
    return Solved(meeting, copies, common.perimeter_s / repeats, turned(tuple(jobs), bins))
