"""Which jobs are joined by places they have in common: kept by place, so that crowded places cost no pairs of jobs."""

from __future__ import annotations

from collections.abc import Collection, Iterable


class MeetingPlaces:
    """Jobs and the places of each, by number."""

    def __init__(self) -> None:
        self._places: dict[str, frozenset[int]] = {}
        self._jobs: dict[int, set[str]] = {}

    def put(self, job: str, places: frozenset[int]) -> None:
        """Set the places of ``job``, new or known."""
        self.remove(job)
        self._places[job] = places
        for place in places:
            self._jobs.setdefault(place, set()).add(job)

    def remove(self, job: str) -> frozenset[int]:
        """Remove ``job``, if it is known; return its places."""
        places = self._places.pop(job, frozenset())
        for place in places:
            self._jobs[place].discard(job)
            if not self._jobs[place]:
                del self._jobs[place]
        return places

    def joined(self, jobs: Iterable[str], places: Collection[int] = ()) -> set[str]:
        """Return ``jobs`` and those that places join with them or with ``places``, directly or through other jobs."""
        found = set(jobs)
        seen = {place for place in places if place in self._jobs}
        edge = [*seen]
        for job in found:
            edge += self._places[job] - seen
            seen |= self._places[job]
        while edge:
            for job in self._jobs[edge.pop()]:
                if job not in found:
                    found.add(job)
                    edge += self._places[job] - seen
                    seen |= self._places[job]
        return found
