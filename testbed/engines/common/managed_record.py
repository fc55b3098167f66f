"""What engines put on record of jobs under a manager. Pure."""

from __future__ import annotations

from dataclasses import replace

from testbed.engines.common.managed_jobs import ManagedJobs
from testbed.experiment.experiment import Experiment
from testbed.results.record import ManagedRecord


def record_of(managed: ManagedJobs | None, now_s: float) -> ManagedRecord | None:
    """Return what has become of the jobs by ``now_s``; None where there is no manager."""
    if managed is None:
        return None
    return ManagedRecord(tuple(managed.stints), managed.stints_of(), managed.outcomes(now_s), dict(managed.refused))


def with_stints(experiment: Experiment, record: ManagedRecord | None) -> Experiment:
    """Return the experiment with each stint as a job, for what looks at jobs one by one."""
    return experiment if record is None else replace(experiment, jobs=record.stints)


def progress_of(managed: ManagedJobs) -> dict[str, int]:
    """How many of the jobs are done, as a message about progress has it."""
    return {"value": managed.total - managed.unfinished, "total": managed.total}
