"""Who contends with whom from event to event: the parts of the cluster that it joins, and contention as arrays."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import Final

import numpy as np

from controller.schedulers.common.link_sharing import LinkSharing
from controller.schedulers.crux.levels.contention_graph import ContentionGraph, Floats, Numbers

MANY: Final = 4
"""If more than one in so many jobs of the parts that changed did, these are looked through."""


class ContendingParts:
    """The parts that contention joins, and for each job that shares a link with others those others, as an array."""

    def __init__(self, users: LinkSharing) -> None:
        self._users = users
        self._members: dict[int, set[str]] = {}
        self._next = 0
        self.part_of: dict[str, int] = {}
        """Job that contends -> the number of its part. A part in which anything changed has another number."""
        self._slots: dict[str, int] = {}
        self._free: list[int] = []
        self._beside: dict[str, Numbers] = {}

    def follow(self, changed: Collection[str]) -> None:
        """Bring all up to date after the jobs ``changed``, some of which may be gone, share links with others."""
        contend = sorted(job for job in changed if self._users.contends(job))
        old = {self.part_of.pop(job) for job in changed if job in self.part_of}
        left = set[str]().union(*(self._members.pop(part) for part in old)).difference(changed).union(contend)
        many = MANY * len(contend) > len(left)
        for part in self._users.joined(contend) if many else self._apart(contend, left):
            self._next += 1
            self._members[self._next] = part
            self.part_of.update(dict.fromkeys(part, self._next))
        for job in sorted(set(changed).difference(contend)):
            if job in self._slots:
                self._free.append(self._slots.pop(job))
                del self._beside[job]
        for job in contend:
            if job not in self._slots:
                self._slots[job] = self._free.pop() if self._free else len(self._slots)
        for job in contend:
            others = self._users.beside(job)
            self._beside[job] = np.fromiter(map(self._slots.__getitem__, others), np.intp, len(others))

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
        rank[np.fromiter(map(self._slots.__getitem__, order), np.intp, count)] = np.arange(count)
        neighbours = [self._beside[job] for job in order]
        others = rank[np.concatenate(neighbours)]
        own = np.repeat(np.arange(count), np.fromiter(map(len, neighbours), np.intp, count))
        down = own < others
        higher = own[down]
        return ContentionGraph(count, higher, others[down], intensities[higher])
