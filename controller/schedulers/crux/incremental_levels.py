"""Levels of Crux from event to event: only parts of the cluster in which something changed are recomputed.

Jobs that no chain of contention connects do not affect each other's levels (see
:mod:`controller.schedulers.crux.compression`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from controller.schedulers.common.link_sharing import LinkSharing
from controller.schedulers.crux.compression import compress, contention_edges_among
from controller.schedulers.crux.intensity import Profile
from controller.schedulers.crux.levels.contention_graph import ContentionGraph, Numbers
from controller.schedulers.crux.levels.kept_levels import NO_LEVEL, KeptLevels
from controller.schedulers.crux.levels.large_parts import LARGE, compress_graph


class _Part:
    """Jobs that contention joins, highest priority first; what it takes to level them is computed when it is asked for.

    ``kept``: the levels with which the part ended last, where those in force counted.
    """

    def __init__(
        self, order: tuple[str, ...], intensities: tuple[float, ...], levels: int, seed: int, users: LinkSharing
    ) -> None:
        self.order, self.intensities, self.compressed_with = order, intensities, (levels, seed)
        self.kept: dict[str, int] | None = None
        self._users = users

    @cached_property
    def graph(self) -> ContentionGraph:
        """Who contends with whom."""
        return ContentionGraph.among(self.order, self._users.beside, self.intensities)

    @cached_property
    def best(self) -> dict[str, int]:
        """Job -> level of the heaviest cut found."""
        levels, seed = self.compressed_with
        if len(self.order) > LARGE:
            found = compress_graph(self.graph, levels, seed).tolist()
            return dict(zip(self.order, found, strict=True))
        edges = contention_edges_among(self.order, self._users, dict(zip(self.order, self.intensities, strict=True)))
        return compress(self.order, edges, levels, seed)

    def keep(self, in_force: Mapping[str, int], share: float) -> dict[str, int]:
        """The levels that follow levels ``in_force``: the same ones where the part ended with those."""
        if self.kept is None or any(in_force.get(job) != level for job, level in self.kept.items()):
            before = np.array([in_force.get(job, NO_LEVEL) for job in self.order], np.intp)
            found = KeptLevels(self.graph, self.compressed_with[0]).kept(before, self._best_by_rank, share).tolist()
            self.kept = dict(zip(self.order, found, strict=True))
        return self.kept

    def _best_by_rank(self) -> Numbers:
        return np.array([self.best[job] for job in self.order], np.intp)


class IncrementalLevels:
    """Which jobs contend, and the last levels of each part."""

    def __init__(self) -> None:
        self._users = LinkSharing()
        self._parts: dict[str, _Part] = {}
        """By the first job of the part in order of priority."""

    def follow(self, used: Mapping[str, frozenset[int]]) -> None:
        """Let ``used`` be the jobs and the links of each."""
        changed = self._users.follow(used)
        self._parts = {first: part for first, part in self._parts.items() if changed.isdisjoint(part.order)}

    def contending(self, order: Sequence[str]) -> list[str]:
        """Return the jobs of ``order`` that share a link with another one."""
        return [job for job in order if self._users.beside(job)]

    def levels(
        self,
        order: Sequence[str],
        profiles: Mapping[str, Profile],
        levels: int,
        seed: int,
        in_force: Mapping[str, int] | None = None,
        share: float = 0.0,
    ) -> dict[str, int]:
        """Return job -> level for those of ``order`` (highest priority first) that contend, as ``compress`` would.

        Levels ``in_force`` stay where they cut at least (1 - ``share``) of that (:class:`.KeptLevels`).
        """
        found: dict[str, int] = {}
        parts = [self._part(members, profiles, levels, seed) for members in self._members(order)]
        self._parts = {part.order[0]: part for part in parts}
        for part in parts:
            found.update(part.keep(in_force, share) if in_force else part.best)
        return {job: found[job] for job in order if job in found}

    def _members(self, order: Sequence[str]) -> list[list[str]]:
        """The jobs of each part, in the order given; unchanged parts are reused."""
        part_of = {job: part.order[0] for part in self._parts.values() for job in part.order}
        new = [job for job in order if job not in part_of and self._users.beside(job)]
        for joined in self._users.joined(new):
            part_of.update(dict.fromkeys(joined, next(iter(joined))))
        members: dict[str, list[str]] = {}
        for job in order:
            if job in part_of:
                members.setdefault(part_of[job], []).append(job)
        return list(members.values())

    def _part(self, members: list[str], profiles: Mapping[str, Profile], levels: int, seed: int) -> _Part:
        order, intensities = tuple(members), tuple(profiles[job].intensity for job in members)
        known = self._parts.get(members[0])
        if known and (known.order, known.intensities, known.compressed_with) == (order, intensities, (levels, seed)):
            return known
        return _Part(order, intensities, levels, seed, self._users)
