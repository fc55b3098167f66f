"""Levels of Crux from event to event: only parts of the cluster in which something changed are recomputed.

Jobs that no chain of contention connects do not affect each other's levels (see
:mod:`controller.schedulers.crux.compression`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import repeat

import numpy as np

from controller.schedulers.common.changes import Changes
from controller.schedulers.common.link_sharing import LinkSharing
from controller.schedulers.crux.compression import compress, contention_edges_among
from controller.schedulers.crux.kept.parts import ContendingParts
from controller.schedulers.crux.levels.contention_graph import ContentionGraph, Floats, Numbers
from controller.schedulers.crux.levels.kept_levels import NO_LEVEL, KeptLevels
from controller.schedulers.crux.levels.large_parts import LARGE, compress_graph


class _Part:
    """Jobs that contention joins, highest priority first; what it takes to level them is computed when it is asked for.

    ``kept``: the levels with which the part ended last, where those in force counted.
    """

    def __init__(
        self, order: list[str], intensities: Floats, levels: int, seed: int, users: LinkSharing, parts: ContendingParts
    ) -> None:
        self.order, self.intensities, self.compressed_with = order, intensities, (levels, seed)
        self.kept: Numbers | None = None
        self._users, self._parts = users, parts

    @cached_property
    def graph(self) -> ContentionGraph:
        """Who contends with whom."""
        return self._parts.graph(self.order, self.intensities)

    @cached_property
    def best(self) -> Numbers:
        """Place in the order -> level of the heaviest cut found."""
        levels, seed = self.compressed_with
        if len(self.order) > LARGE:
            return compress_graph(self.graph, levels, seed)
        intensity = dict(zip(self.order, self.intensities.tolist(), strict=True))
        found = compress(self.order, contention_edges_among(self.order, self._users, intensity), levels, seed)
        return np.array([found[job] for job in self.order], np.intp)

    def keep(self, in_force: Numbers, share: float) -> Numbers:
        """The levels that follow levels ``in_force``: the same ones where the part ended with those."""
        if self.kept is None or not np.array_equal(in_force, self.kept):
            self.kept = KeptLevels(self.graph, self.compressed_with[0]).kept(in_force, lambda: self.best, share)
        return self.kept


class IncrementalLevels:
    """Which jobs contend, and the last levels of each part."""

    def __init__(self) -> None:
        self._users = LinkSharing()
        self._contending = ContendingParts(self._users)
        self._parts: dict[int, _Part] = {}

    def follow(self, used: Changes[frozenset[int]]) -> None:
        """Bring all to the jobs ``used.now`` and the links of each."""
        if changed := self._users.carry(used):
            self._contending.follow(changed)

    def contending(self, order: Sequence[str]) -> list[str]:
        """Return the jobs of ``order`` that share a link with another one."""
        return list(filter(self._contending.part_of.__contains__, order))

    def levels(
        self,
        order: Sequence[str],
        intensity: Mapping[str, float],
        levels: int,
        seed: int,
        in_force: Mapping[str, int] | None = None,
        share: float = 0.0,
    ) -> dict[str, int]:
        """Return job -> level for those of ``order`` (highest priority first) that contend, as ``compress`` would.

        Levels ``in_force`` stay where they cut at least (1 - ``share``) of that (:class:`.KeptLevels`).
        """
        order = self.contending(order)
        part_of = _column(self._contending.part_of.__getitem__, order)
        intensities = np.fromiter(map(intensity.__getitem__, order), float, len(order))
        before = _column(in_force.get, order, repeat(NO_LEVEL)) if in_force else None
        found = np.zeros(len(order), np.intp)
        parts: dict[int, _Part] = {}
        for number, places in _places(part_of):
            names = [order[place] for place in places.tolist()]
            part = parts[number] = self._part(number, names, intensities[places], levels, seed)
            found[places] = part.best if before is None else part.keep(before[places], share)
        self._parts = parts
        return dict(zip(order, found.tolist(), strict=True))

    def _part(self, number: int, order: list[str], intensities: Floats, levels: int, seed: int) -> _Part:
        known = self._parts.get(number)
        same = known and known.order == order and known.compressed_with == (levels, seed)
        if known and same and np.array_equal(known.intensities, intensities):
            return known
        return _Part(order, intensities, levels, seed, self._users, self._contending)


def _column(value: Callable[..., int], order: list[str], *others: Iterable[int]) -> Numbers:
    return np.fromiter(map(value, order, *others), np.intp, len(order))


def _places(numbers: Numbers) -> list[tuple[int, Numbers]]:
    """Each of ``numbers``, and its places, ascending."""
    by_number = np.argsort(numbers, kind="stable")
    ordered = numbers[by_number]
    ends = [*(np.flatnonzero(ordered[1:] != ordered[:-1]) + 1).tolist(), len(numbers)]
    bounds = zip([0, *ends[:-1]], ends, strict=True)
    return [(int(ordered[begin]), by_number[begin:end]) for begin, end in bounds if begin < end]
