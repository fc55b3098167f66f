"""A job of an emulated run, from its arrival on."""

from __future__ import annotations

from dataclasses import dataclass, field

from workloads.job import Job


@dataclass
class RunningJob:
    """What is known of a job that has arrived."""

    job: Job
    iterations: dict[str, int] = field(default_factory=dict)
    ended: bool = False
    began: float = 0.0
    profiled: bool = False
    shifted_at: float = 0.0

    @property
    def completed(self) -> int:
        """Iterations that all hosts have ended."""
        return min(self.iterations.values(), default=0)
