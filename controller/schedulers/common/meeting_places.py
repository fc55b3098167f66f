"""Which jobs meet where: kept by place, so that crowded places cost no pairs of jobs."""

from __future__ import annotations

from collections.abc import Iterable


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

    def remove(self, job: str) -> None:
        """Remove ``job``, if it is known."""
        for place in self._places.pop(job, frozenset()):
            self._jobs[place].discard(job)
            if not self._jobs[place]:
                del self._jobs[place]

    def at(self, places: Iterable[int]) -> set[str]:
        """The jobs with one of ``places``."""
        return set[str]().union(*(self._jobs[place] for place in places if place in self._jobs))
