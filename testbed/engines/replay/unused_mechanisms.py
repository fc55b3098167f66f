"""What a manager's parts use of jobs, and what a set of jobs brings: whichever lacks the other is named in a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from workloads.managers.jobs import Waiting
from workloads.managers.manager import Manager
from workloads.managers.placers.skew import SKEW

_LACKING: Final[Mapping[str, str]] = MappingProxyType(
    {
        "elastic": "no job is elastic (min_gpus, max_gpus)",
        "opportunistic": "no job is opportunistic",
        "virtual_cluster": "all jobs have the same virtual cluster",
        "priority": "all jobs have the same priority",
        "stages": "no job has compute and communication times",
        "speeds": "no job has stages or measured steps",
        "profiles": "no job has profiles of storage and preprocessing",
        "skew": "no job has a model whose skew is known",
        "loans": "the capacity never lends hosts",
    }
)
"""Input -> what is said where the jobs lack it, or the capacity."""
_UNUSED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "elastic": "jobs are elastic (min_gpus, max_gpus), and no part of the manager uses that: they keep their size",
        "opportunistic": "jobs are opportunistic, and no part of the manager uses that: they count as any other",
    }
)
"""Input -> what is said where jobs have it and no part of the manager uses it."""
_BROUGHT: Final[Mapping[str, Callable[[Waiting], bool]]] = MappingProxyType(
    {
        "elastic": lambda job: (job.min_gpus or job.gpus) < (job.max_gpus or job.gpus),
        "opportunistic": lambda job: job.opportunistic,
        "stages": lambda job: job.compute_s > 0 and job.communication_s > 0,
        "speeds": lambda job: job.compute_s > 0 or bool(job.step_s),
        "profiles": lambda job: job.storage_s is not None or job.preprocessing_s is not None,
        "skew": lambda job: job.model in SKEW,
    }
)
"""Input -> whether a job brings it."""
_VARIES: Final[Mapping[str, Callable[[Waiting], object]]] = MappingProxyType(
    {"virtual_cluster": lambda job: job.virtual_cluster, "priority": lambda job: job.priority}
)
"""Input -> what two jobs have to differ in to bring it."""


class JobInputs:
    """Collects what jobs bring, one by one."""

    def __init__(self) -> None:
        self._found: set[str] = set()
        self._first: Waiting | None = None

    def add(self, job: Waiting) -> None:
        """Take a job into account."""
        first = self._first = self._first or job
        self._found.update(name for name, brings in _BROUGHT.items() if brings(job))
        self._found.update(name for name, value in _VARIES.items() if value(job) != value(first))

    def notes(self, manager: Manager) -> tuple[str, ...]:
        """Return a line per mechanism of ``manager`` without input, and per input without use; none without jobs."""
        if self._first is None:
            return ()
        return tuple(dict.fromkeys((*self._without_input(manager), *self._without_use(manager))))

    def _without_input(self, manager: Manager) -> Iterator[str]:
        lends = getattr(manager.capacity, "lends", True)
        found = {*self._found, "loans"} if lends else self._found
        for part in manager.parts():
            uses: Mapping[str, str] = getattr(part, "uses", {})
            for what, mechanism in uses.items():
                if mechanism and what not in found:
                    lacking = _LACKING.get(what, f"no job has '{what}'")
                    yield f"{part.name}: {lacking}, so {mechanism} does nothing"

    def _without_use(self, manager: Manager) -> Iterator[str]:
        used = {what for part in manager.parts() for what in getattr(part, "uses", {})}
        yield from (said for what, said in _UNUSED.items() if what in self._found and what not in used)
        for part in manager.parts():
            ignores: Mapping[str, str] = getattr(part, "ignores", {})
            yield from (f"{part.name}: {said}" for what, said in ignores.items() if what in self._found)
