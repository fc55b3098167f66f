"""The errors of this package."""

from __future__ import annotations

from topologies.table import TraceError

__all__ = ["JobError", "TraceError"]


def is_job_name(name: str) -> bool:
    """Whether a job may be called ``name``: ``:`` parts the id of a flow."""
    return bool(name) and ":" not in name


class JobError(ValueError):
    """A job cannot be built; ``job`` names it, ``message`` gives the reason in one line without naming it."""

    def __init__(self, job: str, message: str) -> None:
        super().__init__(f"job '{job}': {message}")
        self.job = job
        self.message = message
