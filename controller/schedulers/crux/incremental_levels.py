"""Levels of Crux from event to event: only parts of the cluster in which something changed are recomputed.

Jobs that no chain of contention connects do not affect each other's levels (see
:mod:`controller.schedulers.crux.compression`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from controller.schedulers.common.link_sharing import LinkSharing
from controller.schedulers.crux.compression import compress, contention_edges_among
from controller.schedulers.crux.levels.contention_graph import ContentionGraph
from controller.schedulers.crux.intensity import Profile
from controller.schedulers.crux.levels.kept_levels import NO_LEVEL, KeptLevels
from controller.schedulers.crux.levels.large_parts import LARGE, compress_graph


@dataclass(frozen=True, slots=True)
class _Part:
    """Jobs that contention joins: highest priority first, their intensities, what they were compressed to and how.

    ``kept``: the levels with which it ended last, where those in force counted.
    """

    order: tuple[str, ...]
    intensities: tuple[float, ...]
    compressed_with: tuple[int, int]
    levels: Mapping[str, int]
    graph: ContentionGraph | None
    kept: Mapping[str, int] | None = None


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
        parts = [self._compressed(part, profiles, levels, seed) for part in self._members(order)]
        if in_force:
            parts = [self._with_kept(part, in_force, share) for part in parts]
        self._parts = {part.order[0]: part for part in parts}
        for part in parts:
            found.update(part.kept if in_force and part.kept is not None else part.levels)
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

    def _compressed(self, members: list[str], profiles: Mapping[str, Profile], levels: int, seed: int) -> _Part:
        order, intensities = tuple(members), tuple(profiles[job].intensity for job in members)
        kept = self._parts.get(members[0])
        if kept and (kept.order, kept.intensities, kept.compressed_with) == (order, intensities, (levels, seed)):
            return kept
        if len(order) <= LARGE:
            edges = contention_edges_among(order, self._users, dict(zip(order, intensities, strict=True)))
            return _Part(order, intensities, (levels, seed), compress(order, edges, levels, seed), None)
        graph = ContentionGraph.among(order, self._users.beside, intensities)
        found = compress_graph(graph, levels, seed).tolist()
        return _Part(order, intensities, (levels, seed), dict(zip(order, found, strict=True)), graph)

    def _with_kept(self, part: _Part, in_force: Mapping[str, int], share: float) -> _Part:
        """``part`` with levels that stay; nothing is to do where those in force are the ones that it ended with."""
        if part.kept is not None and all(in_force.get(job) == level for job, level in part.kept.items()):
            return part
        graph = part.graph or ContentionGraph.among(part.order, self._users.beside, part.intensities)
        before = np.array([in_force.get(job, NO_LEVEL) for job in part.order], np.intp)
        best = np.array([part.levels[job] for job in part.order], np.intp)
        kept = KeptLevels(graph, part.compressed_with[0]).kept(before, best, share).tolist()
        return replace(part, graph=graph, kept=dict(zip(part.order, kept, strict=True)))
