"""The best that paths, priority orders and levels can do: exhaustive search on the fluid model.

One path per job, strict priority, every job starting at time 0, GPU utilisation over the horizon of
:func:`testbed.fluid.periodic.simulate`: the yardstick of small cases (Crux, SIGCOMM 2024, section 4.4).
The search is complete, but equivalent choices are simulated once:

* Jobs that share no link, directly or through others, are *components*: each has its own optimum.
* Inside a component only three things matter: its jobs, how they load the links that two or more of
  them use, and for each pair that shares a link which of the two is served first, or neither.
  Choices that agree in these (interchangeable aggregation switches, levels with gaps, the order of two
  jobs that share no link) are one simulation. A link that another link dominates is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product

from testbed.fluid.periodic import PeriodicOutcome, simulate
from workloads.periodic_job import PeriodicJob

Loads = Mapping[str, float]
"""Link -> seconds it needs for a job's bytes of one iteration."""

_Columns = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class PathChoices:
    """A job and the loads of each of its candidate paths; ``loads`` of ``pattern`` are not used."""

    pattern: PeriodicJob[str]
    candidates: tuple[Loads, ...]

    def on(self, path: int) -> PeriodicJob[str]:
        """The job on candidate ``path``."""
        pattern = self.pattern
        return PeriodicJob(pattern.compute_s, pattern.lead_s, self.candidates[path], pattern.gpus, pattern.offset_s)


@dataclass(frozen=True)
class _Component:
    """Jobs (indices) connected by shared links, t_j of each, the shared links as columns, the pairs that share one."""

    members: tuple[int, ...]
    alone_s: tuple[float, ...]
    columns: _Columns
    pairs: tuple[tuple[int, int], ...]


class Yardstick:
    """Utilisation of one small case under any choice, and the best choices.

    ``paths`` [jobs] are indices of candidates; ``levels`` [jobs], smallest served first; an order
    lists the jobs, first served first. Of equally good choices the first in the order of enumeration
    is returned.
    """

    def __init__(self, choices: Sequence[PathChoices]) -> None:
        self._choices = tuple(choices)
        self._gpus = sum(choice.pattern.gpus for choice in choices)
        self._placed: dict[tuple[int, ...], tuple[_Component, ...]] = {}
        self._busy: dict[tuple[object, ...], float] = {}
        self._best: dict[tuple[object, ...], tuple[float, tuple[int, ...]]] = {}

    @property
    def simulations(self) -> int:
        """How many simulations have run so far."""
        return len(self._busy)

    def utilization(self, paths: Sequence[int], levels: Sequence[int]) -> float:
        """Return GPU utilisation of all jobs on ``paths`` at ``levels``."""
        return sum(self._busy_gpus(part, paths, levels) for part in self._components(paths)) / self._gpus

    def outcome(self, paths: Sequence[int], levels: Sequence[int]) -> PeriodicOutcome:
        """Return the outcome of simulating all jobs together."""
        return simulate([choice.on(path) for choice, path in zip(self._choices, paths, strict=True)], levels)

    def best_levels(self, paths: Sequence[int], count: int) -> tuple[float, tuple[int, ...]]:
        """Return the highest utilisation with at most ``count`` levels, and levels that reach it."""
        return self._extreme(paths, count, best=True)

    def best_order(self, paths: Sequence[int]) -> tuple[float, tuple[int, ...]]:
        """Return the highest utilisation of a level per job, and the levels (ranks) inside each component."""
        return self._extreme(paths, 0, best=True)

    def worst_order(self, paths: Sequence[int]) -> tuple[float, tuple[int, ...]]:
        """Return the lowest utilisation of a level per job, and the levels (ranks) inside each component."""
        return self._extreme(paths, 0, best=False)

    def best_paths(self, count: int) -> tuple[float, tuple[int, ...]]:
        """Return the highest utilisation of any paths at the best of ``count`` levels (0: one per job)."""
        values = ((self._extreme(paths, count, best=True)[0], paths) for paths in self.all_paths())
        return max(values, key=lambda found: found[0])

    def worst_paths(self, count: int) -> tuple[float, tuple[int, ...]]:
        """Return the lowest utilisation of any paths at the best of ``count`` levels (0: one per job)."""
        values = ((self._extreme(paths, count, best=True)[0], paths) for paths in self.all_paths())
        return min(values, key=lambda found: found[0])

    def worst_levels_and_paths(self, count: int) -> float:
        """Return the lowest utilisation of any paths and any ways to use at most ``count`` levels."""
        return min(self._extreme(paths, count, best=False)[0] for paths in self.all_paths())

    def all_paths(self) -> Iterator[tuple[int, ...]]:
        """Every choice of one candidate per job."""
        return product(*(range(len(choice.candidates)) for choice in self._choices))

    def pairs(self, paths: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """The pairs of jobs that share a link on ``paths``."""
        return tuple(pair for part in self._components(paths) for pair in part.pairs)

    def _extreme(self, paths: Sequence[int], count: int, best: bool) -> tuple[float, tuple[int, ...]]:
        levels, total = [0] * len(self._choices), 0.0
        for part in self._components(paths):
            busy, found = self._extreme_of(part, paths, count, best)
            total += busy
            for job, level in zip(part.members, found, strict=True):
                levels[job] = level
        return total / self._gpus, tuple(levels)

    def _extreme_of(
        self, part: _Component, paths: Sequence[int], count: int, best: bool
    ) -> tuple[float, tuple[int, ...]]:
        """Most, or least, busy GPUs of a component, and the levels of its members that reach them."""
        key = (part, count, best)
        if key not in self._best:
            values = [(self._at(part, paths, levels), levels) for levels in assignments(len(part.members), count)]
            self._best[key] = (max if best else min)(values, key=lambda item: item[0])
        return self._best[key]

    def _at(self, part: _Component, paths: Sequence[int], levels: Sequence[int]) -> float:
        full = [0] * len(self._choices)
        for job, level in zip(part.members, levels, strict=True):
            full[job] = level
        return self._busy_gpus(part, paths, full)

    def _busy_gpus(self, part: _Component, paths: Sequence[int], levels: Sequence[int]) -> float:
        signs = tuple((levels[one] > levels[two]) - (levels[one] < levels[two]) for one, two in part.pairs)
        key = (part, signs)
        if key not in self._busy:
            jobs = [self._choices[job].on(paths[job]) for job in part.members]
            self._busy[key] = simulate(jobs, [levels[job] for job in part.members]).busy_gpus
        return self._busy[key]

    def _components(self, paths: Sequence[int]) -> tuple[_Component, ...]:
        key = tuple(paths)
        if key not in self._placed:
            loads = [choice.candidates[path] for choice, path in zip(self._choices, key, strict=True)]
            self._placed[key] = components(loads)
        return self._placed[key]


def assignments(jobs: int, count: int) -> Iterator[tuple[int, ...]]:
    """Every way to put ``jobs`` on at most ``count`` levels without gaps; with 0, every order, a level each."""
    if count < 1:
        return permutations(range(jobs))
    every = product(range(min(count, jobs)), repeat=jobs)
    return (levels for levels in every if set(levels) == set(range(max(levels) + 1)))


def components(loads: Sequence[Loads]) -> tuple[_Component, ...]:
    """Return the groups of jobs that share links; ``loads`` job by job. A job alone is a group as well."""
    users = _users(loads)
    group = list(range(len(loads)))
    for sharing in users.values():
        merged = min(group[job] for job in sharing)
        old = {group[job] for job in sharing}
        group = [merged if label in old else label for label in group]
    return tuple(_component(label, group, loads, users) for label in sorted(set(group)))


def _users(loads: Sequence[Loads]) -> dict[str, tuple[int, ...]]:
    """Link -> jobs that use it, for links with two or more."""
    users: dict[str, list[int]] = {}
    for job, load in enumerate(loads):
        for link, seconds in load.items():
            if seconds > 0:
                users.setdefault(link, []).append(job)
    return {link: tuple(sharing) for link, sharing in users.items() if len(sharing) > 1}


def _component(
    label: int, group: Sequence[int], loads: Sequence[Loads], users: Mapping[str, tuple[int, ...]]
) -> _Component:
    members = tuple(job for job, found in enumerate(group) if found == label)
    inside = [link for link, sharing in users.items() if sharing[0] in members]
    columns = {tuple(loads[job].get(link, 0.0) for job in members) for link in inside}
    kept = tuple(sorted(column for column in columns if not _dominated(column, columns)))
    pairs = {pair for link in inside for pair in combinations(users[link], 2)}
    alone_s = tuple(max(loads[job].values(), default=0.0) for job in members)
    return _Component(members, alone_s, kept, tuple(sorted(pairs)))


def _dominated(column: tuple[float, ...], columns: set[tuple[float, ...]]) -> bool:
    """Whether every job loads another link at least as much: then this one never saturates first."""
    return any(
        other != column and all(mine <= theirs for mine, theirs in zip(column, other, strict=True)) for other in columns
    )
