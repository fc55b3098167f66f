"""What the files of workloads say and a run leaves out: said wherever numbers of the run are. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.experiment.experiment import Managed
from workloads.job import Job


def left_out_of_files(jobs: Sequence[Job], managed: Managed | None = None) -> list[str]:
    """Return a line for each thing that is left out: ``job ddp: trace.json leaves out ..``, once for equal jobs."""
    found = [(job.name, job.left_out) for job in jobs]
    for submission in managed.submissions if managed is not None else ():
        workload = submission.spec.workload
        found.append((submission.spec.name, () if workload is None else workload.said_left_out))
    names: dict[str, list[str]] = {}
    for name, lines in found:
        for line in lines:
            names.setdefault(line, []).append(name)
    return [f"{_jobs(those)}: {line}" for line, those in names.items()]


def _jobs(names: Sequence[str]) -> str:
    return f"job {names[0]}" if len(names) == 1 else f"jobs {names[0]} and {len(names) - 1} more"
