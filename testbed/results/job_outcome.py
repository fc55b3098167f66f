"""What became of a job that a cluster manager had to place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """A job under a manager: when it was submitted, started and ended (None: not within the run), what it used.

    ``alone_s`` is how long it would have run without contention; ``busy_gpu_s`` the time its GPUs computed,
    ``held_s`` for how long it held any. ``waits``: cause (:data:`workloads.managers.ledger.CAUSES`) -> seconds
    without GPUs. ``status``: passed, killed or unsuccessful, after so many ``attempts``.
    """

    name: str
    gpus: int
    submit_s: float
    start_s: float | None
    end_s: float | None
    alone_s: float
    busy_gpu_s: float = 0.0
    allocated_gpu_s: float = 0.0
    held_s: float = 0.0
    preemptions: int = 0
    moves: int = 0
    waits: Mapping[str, float] = field(default_factory=dict)
    status: str = "passed"
    attempts: int = 1

    @property
    def jct_s(self) -> float | None:
        """Seconds from submission to end."""
        return None if self.end_s is None else self.end_s - self.submit_s
