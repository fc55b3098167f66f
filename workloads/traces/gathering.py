"""Collects the jobs of a source: the same reasons for leaving a job out in every format."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Final

from topologies.limits import TRACE_NUMBER
from topologies.table import Row, TraceError
from workloads.traces.trace import Trace, TraceJob, unique

NO_GPUS: Final = "no GPUs"
UNKNOWN_GPUS: Final = "unknown GPUs"
NO_SUBMISSION: Final = "no submission time"
NEVER_RAN: Final = "never ran"
STILL_RUNNING: Final = "still running"
NO_END: Final = "no end time"
RAN_BEFORE: Final = "ran before it was submitted"
ENDED_BEFORE: Final = "ended before it began"
NO_TIME: Final = "ran for no time"
OTHER_STATE: Final = "in another state"


def bounded(row: Row, what: str, value: float) -> float:
    """Return what several numbers of a line come to; :class:`TraceError` if it is larger than any may be.

    Each of them is within the limit, but their product or quotient need not be.
    """
    if not value <= TRACE_NUMBER:
        row.fail(f"{what} is {value:g}", f"at most {TRACE_NUMBER:g}")
    return value


class Gathering:
    """The jobs of one trace while it is read, and the reasons for those left out."""

    def __init__(self, path: Path) -> None:
        self.skipped: Counter[str] = Counter()
        self.notes: list[str] = []
        self._path = path
        self._taken: dict[str, int] = {}
        self._jobs: list[tuple[float, TraceJob]] = []

    def skip(self, reason: str) -> None:
        """Count a row or job that is left out."""
        self.skipped[reason] += 1

    def add(
        self,
        name: str,
        submitted_s: float | None,
        duration_s: float | None,
        gpus: int | None,
        *,
        model: str = "",
        user: str = "",
        virtual_cluster: str = "",
        fate: str = "pass",
        hosts: tuple[str, ...] = (),
        attempts: int = 1,
        min_gpus: int | None = None,
        max_gpus: int | None = None,
        opportunistic: bool = False,
    ) -> None:
        """Add a job whose ``submitted_s`` counts from any moment, or count why it cannot be used."""
        if gpus is None:
            self.skip(UNKNOWN_GPUS)
        elif gpus < 1:
            self.skip(NO_GPUS)
        elif submitted_s is None:
            self.skip(NO_SUBMISSION)
        elif duration_s is None:
            self.skip(NO_END)
        elif duration_s <= 0:
            self.skip(ENDED_BEFORE if duration_s < 0 else NO_TIME)
        else:
            named = unique(name, self._taken)
            job = TraceJob(named, 0.0, duration_s, gpus, model, user, virtual_cluster, fate, hosts, max(1, attempts))
            job = replace(job, min_gpus=min_gpus, max_gpus=max_gpus, opportunistic=opportunistic)
            self._jobs.append((submitted_s, job))

    def trace(self, name: str, *, origin_s: float | None = None, synthetic: bool = False) -> Trace:
        """Return the trace; its times count from ``origin_s``, by default from the first submission.

        Raises :class:`TraceError` if not a single job is left.
        """
        if not self._jobs:
            reasons = ", ".join(f"{count} {reason}" for reason, count in self.skipped.items())
            what = f"no job can be used ({reasons})" if reasons else "there are no jobs"
            raise TraceError(str(self._path), None, what, "at least one job that ran on GPUs")
        first = min(time for time, _ in self._jobs) if origin_s is None else origin_s
        ordered = sorted(self._jobs, key=lambda item: item[0])
        jobs = tuple(replace(job, submit_s=time - first) for time, job in ordered)
        return Trace(name, jobs, dict(sorted(self.skipped.items())), synthetic, tuple(self.notes))
