"""Which jobs share a link, kept up to date: the cost of a change depends on the links of the changed jobs only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set


class LinkSharing:
    """Jobs and the links they use, by number."""

    def __init__(self) -> None:
        self._given: dict[str, Collection[int]] = {}
        self._links: dict[str, frozenset[int]] = {}
        self._users: dict[int, set[str]] = {}
        self._beside: dict[str, set[str]] = {}

    def follow(self, links: Mapping[str, Collection[int]]) -> set[str]:
        """Set the jobs and the links that each uses; return the jobs that now share links with other jobs than before.

        A collection that is the same object counts as unchanged.
        """
        changed: set[str] = set()
        for job in [job for job in self._given if job not in links]:
            changed |= self.remove(job)
        for job, used in links.items():
            if self._given.get(job) is not used:
                changed |= self.put(job, used)
        return changed

    def put(self, job: str, links: Collection[int]) -> Set[str]:
        """Set the links of ``job``, new or known; return the jobs that now share links with other jobs than before."""
        before, after = self._links.get(job, frozenset()), frozenset(links)
        known_already = job in self._links
        self._given[job], self._links[job] = links, after
        if known_already and after == before:
            return frozenset()
        self._leave(job, before - after)
        shared = [self._users[link] for link in before & after]
        for link in after - before:
            users = self._users.get(link)
            if users is None:  # as for most links: those of the job's own NICs
                self._users[link] = {job}
            else:
                users.add(job)
                shared.append(users)
        beside = set[str]().union(*shared) - {job}
        known = self._beside.get(job, set())
        for other in known - beside:
            self._beside[other].discard(job)
        for other in beside - known:
            self._beside[other].add(job)
        self._beside[job] = beside
        return beside ^ known | {job} if beside != known else frozenset()

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

    def using(self, links: Iterable[int]) -> set[str]:
        """The jobs that use one of ``links``."""
        return {job for link in links for job in self._users.get(link, ())}

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
