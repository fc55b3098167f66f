"""Who contends with whom from event to event: the parts of the cluster that it joins, and contention as arrays."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence, Set
from typing import Final

import numpy as np

from controller.schedulers.common.link_sharing import LinkSharing
from controller.schedulers.crux.levels.contention_graph import ContentionGraph, Floats, Numbers

MANY: Final = 4
"""If more than one in so many jobs of the parts that changed did, these are looked through."""


class ContendingParts:
    """The parts that contention joins, and the pairs of jobs that share links, as arrays."""

    def __init__(self, users: LinkSharing) -> None:
        self._users = users
        self._members: dict[int, set[str]] = {}
        self._next = 0
        self.part_of: dict[str, int] = {}
        """Job that contends -> the number of its part. A part in which anything changed has another number."""
        self._slots: dict[str, int] = {}
        self._free: list[int] = []
        self._pairs: Numbers = np.empty((2, 0), np.intp)

    def follow(self, changed: Set[str]) -> None:
        """Bring all up to date after the jobs ``changed``, some of which may be gone, share links with others."""
        contend = sorted(job for job in changed if self._users.contends(job))
        self._follow_parts(changed, contend)
        self._follow_pairs(changed, contend)

    def _follow_parts(self, changed: Set[str], contend: list[str]) -> None:
        old = {self.part_of.pop(job) for job in changed if job in self.part_of}
        left = set[str]().union(*(self._members.pop(part) for part in old)).difference(changed).union(contend)
        many = MANY * len(contend) > len(left)
        for part in self._users.joined(contend) if many else self._apart(contend, left):
            self._next += 1
            self._members[self._next] = part
            self.part_of.update(dict.fromkeys(part, self._next))

    def _follow_pairs(self, changed: Set[str], contend: list[str]) -> None:
        """Pairs come and go only between two jobs that changed."""
        slots, known = self._slots, [self._slots[job] for job in changed if job in self._slots]
        touched = np.zeros(len(slots) + len(self._free), bool)
        touched[known] = True
        self._free += sorted(slots.pop(job) for job in changed - set(contend) if job in slots)
        for job in contend:
            if job not in slots:
                slots[job] = self._free.pop() if self._free else len(slots)
        found = [(job, changed & self._users.beside(job)) for job in contend]
        ones = np.repeat(self._column([job for job, _ in found]), [len(others) for _, others in found])
        others = self._column([other for _, others in found for other in others])
        stay = ~touched[self._pairs].all(axis=0)
        self._pairs = np.concatenate((self._pairs[:, stay], np.stack((ones, others))[:, ones < others]), axis=1)

    def _column(self, jobs: Sequence[str]) -> Numbers:
        return np.fromiter(map(self._slots.__getitem__, jobs), np.intp, len(jobs))

    def _apart(self, changed: Sequence[str], jobs: set[str]) -> list[set[str]]:
        """Return the parts of ``jobs``, in each of which is a job of ``changed``.

        Parts grow around these by turns, until all but one are complete: the rest of ``jobs`` is that one.
        """
        owner = {job: place for place, job in enumerate(changed)}
        members = {place: [job] for place, job in enumerate(changed)}
        edges = {place: deque([job]) for place, job in enumerate(changed)}
        turns, complete = deque(members), list[set[str]]()
        while len(members) > 1:
            own = turns.popleft()
            if own not in members:
                continue
            if not edges[own]:
                complete.append(set(members.pop(own)))
                continue
            for other in self._users.beside(edges[own].popleft()):
                met = owner.get(other)
                if met is None:
                    owner[other] = own
                    members[own].append(other)
                    edges[own].append(other)
                elif met != own:
                    own, met = (own, met) if len(members[own]) >= len(members[met]) else (met, own)
                    owner.update(dict.fromkeys(members[met], own))
                    members[own] += members.pop(met)
                    edges[own] += edges.pop(met)
            turns.append(own)
        return [*complete, jobs.difference(*complete)] if members else complete

    def graph(self, order: Sequence[str], intensities: Floats) -> ContentionGraph:
        """The contention graph of a part, its jobs in ``order``, highest priority first."""
        count = len(order)
        rank = np.full(len(self._slots) + len(self._free), -1)
        rank[self._column(order)] = np.arange(count)
        one, other = rank[self._pairs]
        inside = one >= 0
        one, other = one[inside], other[inside]
        higher, lower = np.divmod(np.sort(np.minimum(one, other) * count + np.maximum(one, other)), count)
        return ContentionGraph(count, higher, lower, intensities[higher])
