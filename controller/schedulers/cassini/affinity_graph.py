"""CASSINI's affinity graph (NSDI 2024): from turns on every link to one time-shift per job.

Jobs on one side, links that several of them share on the other; the edge of a job and a link carries
the job's turn on that link in seconds. Without loops every job gets one shift, and all links agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SharedLink:
    """A link and its edges: ``turns_s``, job -> t_j^l in seconds. ``unshifted``: its score if nothing is shifted."""

    name: str
    turns_s: Mapping[str, float]
    unshifted: float = 0.0


def without_loops(links: Iterable[SharedLink]) -> tuple[tuple[SharedLink, ...], tuple[SharedLink, ...]]:
    """Return the links to keep and those to drop, so that no loop is left.

    The paper discards placements whose graph has a loop; here the placement is given, so a link that
    closes a loop is dropped with all its edges: of the links of a loop the one that scores best
    without shifts, for it needs them least (the later of ``links`` on a tie).
    """
    group: dict[str, str] = {}
    kept: list[SharedLink] = []
    dropped: list[SharedLink] = []
    for link in sorted(links, key=lambda link: link.unshifted):
        roots = [_root(group, job) for job in link.turns_s]
        if len(set(roots)) < len(roots):
            dropped.append(link)
            continue
        kept.append(link)
        for root in roots[1:]:
            group[root] = roots[0]
    return tuple(kept), tuple(dropped)


def _root(group: dict[str, str], job: str) -> str:
    while group.setdefault(job, job) != job:
        group[job] = group[group[job]]
        job = group[job]
    return job


def time_shifts(
    jobs: Sequence[str], links: Sequence[SharedLink], periods_s: Mapping[str, float], starts_s: Mapping[str, float]
) -> dict[str, float]:
    """Return job -> t_j, from 0 to below its period, for every job on one of ``links`` (a graph without loops).

    Breadth-first from the first of ``jobs`` of each part of the graph, which stays where it starts
    (``starts_s``): t_k = (t_j - t_j^l + t_k^l) mod P_k for k next to j through l.
    """
    at: dict[str, list[SharedLink]] = {}
    for link in links:
        for job in link.turns_s:
            at.setdefault(job, []).append(link)
    shifts: dict[str, float] = {}
    for first in jobs:
        if first not in at or first in shifts:
            continue
        shifts[first] = _modulo(starts_s.get(first, 0.0), periods_s[first])
        frontier = [first]
        for job in frontier:  # grows as it is walked
            for link in at[job]:
                for other in (name for name in link.turns_s if name not in shifts):
                    behind = link.turns_s[other] - link.turns_s[job]
                    shifts[other] = _modulo(shifts[job] + behind, periods_s[other])
                    frontier.append(other)
    return shifts


def _modulo(time_s: float, period_s: float) -> float:
    """``time_s`` within a period; what is short of a whole one by less than 1e-9 of it is 0."""
    rest = time_s % period_s
    return 0.0 if period_s - rest < 1e-9 * period_s else rest
