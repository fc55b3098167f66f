"""Factors, priorities and their order from event to event: worked out anew only for jobs that have changed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Final

import numpy as np

from controller.schedulers.common.arrivals import Arrivals
from controller.schedulers.common.changes import Changes, changes
from controller.schedulers.crux.intensity import Profile
from controller.schedulers.crux.path_loops import Flags, Floats, Numbers
from controller.schedulers.crux.priority import (
    CLAMP,
    EQUAL,
    Times,
    clamped_factor,
    priority_order,
    ties,
    times_of,
    transient_gain,
)

MANY: Final = 8
"""If more than one in so many jobs changed, all are sorted again."""
FEW: Final = 48
"""Up to so many jobs it takes less time to sort them than to look for ties by arrays."""


class KeptPriorities:
    """k_j and P_j = k_j * I_j of the jobs that send, and their order: what the functions of :mod:`..priority` return.

    Mappings are in the order of the profiles.
    """

    def __init__(self, clamp: float = CLAMP) -> None:
        self._clamp = clamp
        self._profiles: Mapping[str, Profile] = {}
        self._arrivals = Arrivals()
        self._by_traffic = _Sorted(self._arrivals)
        self._by_priority = _Sorted(self._arrivals)
        self._patterns: dict[Times, int] = {}
        self._pattern: dict[str, int] = {}
        self._gains: dict[str, float] = {}
        self.reference: Profile | None = None
        """The job with the most traffic, None without jobs."""
        self.intensities: dict[str, float] = {}
        """Job -> I_j."""
        self.communication_s: dict[str, float] = {}
        """Job -> t_j."""
        self.factors: dict[str, float] = {}
        """Job -> k_j."""
        self.priorities: dict[str, float] = {}
        """Job -> P_j."""

    def follow(self, changed: Changes[Profile]) -> None:
        """Bring all to the profiles ``changed.now`` of the jobs that send."""
        if not changed:
            return
        profiles = self._profiles = changed.now
        self._follow_traffic(changed)
        before = self.reference
        self.reference = profiles[self._by_traffic.names[0]] if profiles else None
        if self.reference is not before:
            self._gains = {}
        for name in changed.left:
            self._gains.pop(name, None)
        changed.carry(self.intensities, lambda profile: profile.intensity)
        changed.carry(self.communication_s, lambda profile: profile.communication_s)
        self._follow_patterns(changed)
        if not changed.moved and self.reference and before and times_of(before) == times_of(self.reference):
            self._follow_priorities(changed, self.reference)
        else:
            self._work_out_all()

    def _follow_traffic(self, changed: Changes[Profile]) -> None:
        self._arrivals.follow(changed)
        if changed.moved:
            self._by_traffic = _Sorted(self._arrivals)
            self._by_traffic.follow({}, {name: -profile.traffic for name, profile in changed.now.items()})
        else:
            self._by_traffic.follow(
                {name: -profile.traffic for name, profile in changed.left.items()},
                {name: -profile.traffic for name, profile in changed.come.items()},
            )

    def _follow_patterns(self, changed: Changes[Profile]) -> None:
        if len(self._patterns) > MANY * (len(self._profiles) + MANY):  # most of which no job has any more
            self._patterns, self._pattern = {}, {}
            changed = changes({}, self._profiles)
        changed.carry(self._pattern, lambda profile: self._patterns.setdefault(times_of(profile), len(self._patterns)))

    def _follow_priorities(self, changed: Changes[Profile], reference: Profile) -> None:
        """The jobs that changed, where the iteration of the reference did not."""
        times = times_of(reference)
        left = {name: -self.priorities[name] for name in changed.left}
        changed.carry(self.factors, lambda profile: clamped_factor(times_of(profile), times, self._clamp))
        changed.carry(self.priorities, lambda profile: self.factors[profile.job] * profile.intensity)
        self._by_priority.follow(left, {name: -self.priorities[name] for name in changed.come})

    def _work_out_all(self) -> None:
        times = times_of(self.reference) if self.reference else (0.0, 0.0, 0.0)
        profiles, clamp = self._profiles, self._clamp
        self.factors = {name: clamped_factor(times_of(each), times, clamp) for name, each in profiles.items()}
        self.priorities = {name: factor * profiles[name].intensity for name, factor in self.factors.items()}
        self._by_priority = _Sorted(self._arrivals)
        self._by_priority.follow({}, {name: -priority for name, priority in self.priorities.items()})

    def order(self) -> list[str]:
        """Return the jobs in the order of :func:`..priority.priority_order`."""
        names = self._by_priority.names.copy()
        if len(names) <= FEW:
            return list(priority_order(self.priorities, self._profiles))
        falling = _column(names, self.priorities)
        begins, ends = _stretches(falling[:-1] - falling[1:] <= 2 * EQUAL * np.abs(falling[:-1]))
        patterns = np.fromiter(map(self._pattern.__getitem__, names), np.intp, len(names))
        mixed = _unlike(patterns, begins, ends)
        for first, last in zip(begins[mixed].tolist(), ends[mixed].tolist(), strict=True):
            for begin, end in ties(falling[first:last].tolist()):
                names[first + begin : first + end] = self._by_gain(names[first + begin : first + end])
        return names

    def _by_gain(self, tied: list[str]) -> list[str]:
        if len({self._pattern[job] for job in tied}) == 1:
            return tied
        assert self.reference is not None
        for job in tied:
            if job not in self._gains:
                self._gains[job] = transient_gain(self._profiles[job], self.reference)
        return sorted(tied, key=lambda job: (-self._gains[job], self._arrivals.number[job]))


class _Sorted:
    """Names by a number of each, then in the order of ``arrivals``."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrival = arrivals.number
        self._keys: list[tuple[float, int]] = []
        self.names: list[str] = []

    def follow(self, left: Mapping[str, float], come: Mapping[str, float]) -> None:
        """Remove ``left``, which are there with these numbers, then add ``come``."""
        many = MANY * (len(left) + len(come)) > len(self._keys)
        for name, number in left.items():
            place = bisect_left(self._keys, (number, self._arrival[name]))
            del self._keys[place], self.names[place]
        if many:
            self._add_all(come)
            return
        for name, number in come.items():
            key = number, self._arrival[name]
            place = bisect_left(self._keys, key)
            self._keys.insert(place, key)
            self.names.insert(place, name)

    def _add_all(self, come: Mapping[str, float]) -> None:
        named = [*zip(self._keys, self.names, strict=True)]
        named += [((number, self._arrival[name]), name) for name, number in come.items()]
        named.sort()
        self._keys, self.names = [key for key, _ in named], [name for _, name in named]


def _column(names: list[str], values: Mapping[str, float]) -> Floats:
    return np.fromiter(map(values.__getitem__, names), float, len(names))


def _stretches(joined: Flags) -> tuple[Numbers, Numbers]:
    """Begins and ends of places in a row, where ``joined`` [place] says whether the next one belongs to it, too."""
    inside = np.concatenate(([False], joined, [False]))
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    return edges[0::2], edges[1::2] + 1


def _unlike(numbers: Numbers, begins: Numbers, ends: Numbers) -> Flags:
    """Stretch -> whether its ``numbers`` are not all the same."""
    if not len(begins):
        return np.zeros(0, bool)
    bounds = np.stack((begins, ends), axis=1).ravel()
    padded = np.append(numbers, 0)
    unlike: Flags = np.maximum.reduceat(padded, bounds)[::2] != np.minimum.reduceat(padded, bounds)[::2]
    return unlike
