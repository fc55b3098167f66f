"""The errors of this package."""

from __future__ import annotations

from topologies.table import TraceError

__all__ = ["JobError", "TraceError"]


class JobError(ValueError):
    """A job cannot be built; ``job`` names it, ``message`` gives the reason in one line without naming it."""

    def __init__(self, job: str, message: str) -> None:
        super().__init__(f"job '{job}': {message}")
        self.job = job
        self.message = message
