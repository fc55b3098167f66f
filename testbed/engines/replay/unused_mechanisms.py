"""What the parts of a manager use of jobs, and which of it a set of jobs lacks: a mechanism without input is named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from workloads.managers.jobs import Waiting
from workloads.managers.manager import Manager

_LACKING: Final[Mapping[str, str]] = MappingProxyType(
    {
        "elastic": "no job is elastic (min_gpus, max_gpus)",
        "opportunistic": "no job is opportunistic",
        "virtual_cluster": "all jobs have the same virtual cluster",
        "stages": "no job has compute and communication times",
    }
)
"""Input -> what is said where the jobs lack it."""


class JobInputs:
    """Collects what jobs bring, one by one."""

    def __init__(self) -> None:
        self._found: set[str] = set()
        self._virtual_clusters: set[str] = set()
        self._jobs = 0

    def add(self, job: Waiting) -> None:
        """Take a job into account."""
        self._jobs += 1
        self._virtual_clusters.add(job.virtual_cluster)
        if (job.min_gpus or job.gpus) < (job.max_gpus or job.gpus):
            self._found.add("elastic")
        if job.opportunistic:
            self._found.add("opportunistic")
        if len(self._virtual_clusters) > 1:
            self._found.add("virtual_cluster")
        if job.compute_s > 0 and job.communication_s > 0:
            self._found.add("stages")

    def notes(self, manager: Manager) -> tuple[str, ...]:
        """Return a line per mechanism of ``manager`` that these jobs leave without input; none without jobs."""
        if not self._jobs:
            return ()
        return tuple(dict.fromkeys(self._lines((manager.queue, manager.policy, manager.placer, manager.capacity))))

    def _lines(self, parts: Iterable[object]) -> Iterator[str]:
        for part in parts:
            uses: Mapping[str, str] = getattr(part, "uses", {})
            for what, mechanism in uses.items():
                if what not in self._found:
                    yield f"{getattr(part, 'name', '')}: {_LACKING[what]}, so {mechanism} does nothing"
