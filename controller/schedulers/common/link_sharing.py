"""Which jobs share a link, kept up to date: the cost of a change depends on the links of the changed jobs only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from typing import Final

from controller.schedulers.common.changes import Changes, changes

_NONE: Final = frozenset[int]()


class LinkSharing:
    """Jobs and the links they use, by number."""

    def __init__(self) -> None:
        self._given: dict[str, Collection[int]] = {}
        self._links: dict[str, frozenset[int]] = {}
        self._users: dict[int, set[str]] = {}
        """Links on which a job is alone may have one set together: a set of one is never changed."""
        self._beside: dict[str, set[str]] = {}

    def follow(self, links: Mapping[str, Collection[int]]) -> set[str]:
        """Set the jobs and the links that each uses; return the jobs that now share links with other jobs than before.

        A collection that is the same object counts as unchanged.
        """
        return self.carry(changes(self._given, links))

    def carry(self, other: Changes[Collection[int]] | Changes[frozenset[int]]) -> set[str]:
        """As :meth:`follow`, where it is known what is ``other`` than before."""
        changed: set[str] = set()
        for job in other.left:
            if job not in other.come:
                changed |= self.remove(job)
        for job, used in other.come.items():
            changed |= self.put(job, used)
        return changed

    def put(self, job: str, links: Collection[int]) -> Set[str]:
        """Set the links of ``job``, new or known; return the jobs that now share links with other jobs than before."""
        before, after = self._links.get(job, _NONE), frozenset(links)
        known = self._beside.setdefault(job, set())
        self._given[job], self._links[job] = links, after
        left, come, alone = before - after, after - before, {job}
        gained, lost = self._others(come, job) - known, self._others(left, job)
        lost = {other for other in lost if self._links[other].isdisjoint(after)}
        self._leave(job, left)
        for link in come:
            users = self._users.get(link)
            if users is None:  # as for most links: those of the job's own NICs
                self._users[link] = alone
            elif len(users) > 1:
                users.add(job)
            else:
                self._users[link] = {*users, job}
        for other in lost:
            self._beside[other].discard(job)
        for other in gained:
            self._beside[other].add(job)
        known -= lost
        known |= gained
        return gained | lost | {job} if gained or lost else frozenset()

    def _others(self, links: Iterable[int], job: str) -> set[str]:
        """Those that use one of ``links``, without ``job``."""
        found = set[str]().union(*(self._users[link] for link in links if link in self._users))
        found.discard(job)
        return found

    def remove(self, job: str) -> Set[str]:
        """Remove ``job``, if it is known; return it and the jobs that shared a link with it."""
        self._given.pop(job, None)
        self._leave(job, self._links.pop(job, ()))
        beside = self._beside.pop(job, set())
        for other in beside:
            self._beside[other].discard(job)
        return beside | {job}

    def _leave(self, job: str, links: Iterable[int]) -> None:
        for link in links:
            users = self._users[link]
            if len(users) > 1:
                users.discard(job)
            else:
                del self._users[link]

    def beside(self, job: str) -> Set[str]:
        """The other jobs that use a link of ``job``."""
        return self._beside[job]

    def contends(self, job: str) -> bool:
        """Whether ``job`` is known and uses a link that another one uses, too."""
        return bool(self._beside.get(job))

    def joined(self, around: Iterable[str]) -> list[set[str]]:
        """The groups with a job of ``around``: jobs that share links, directly or through other jobs."""
        left = dict.fromkeys(around)
        found: list[set[str]] = []
        while left:
            members = self._reached(next(iter(left)))
            for job in members:
                left.pop(job, None)
            found.append(members)
        return found

    def _reached(self, first: str) -> set[str]:
        members, edge = {first}, [first]
        while edge:
            new = self._beside[edge.pop()] - members
            members |= new
            edge += new
        return members
