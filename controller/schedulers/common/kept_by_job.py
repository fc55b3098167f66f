"""What is computed of a job once: an event that changes one job does not compute it of all others again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from topologies.fabric import Fabric
from workloads.job import Job

Made = TypeVar("Made")


class KeptByJob(Generic[Made]):
    """What ``make`` returns, kept as long as it would be called with the very same job and fabric and the same seed."""

    def __init__(self, make: Callable[[Fabric, Job, int], Made]) -> None:
        self._make = make
        self._made_for: tuple[Fabric, int] | None = None
        self._kept: dict[str, tuple[Job, Made]] = {}

    def of(self, fabric: Fabric, jobs: Mapping[str, Job], seed: int) -> dict[str, Made]:
        """Return what is made of each of ``jobs``; others are forgotten."""
        if self._made_for is None or self._made_for[0] is not fabric or self._made_for[1] != seed:
            self._made_for, self._kept = (fabric, seed), {}
        kept = self._kept
        self._kept = {
            name: kept[name] if name in kept and kept[name][0] is job else (job, self._make(fabric, job, seed))
            for name, job in jobs.items()
        }
        return {name: made for name, (_, made) in self._kept.items()}
