"""The running jobs that a new decision may affect: most events affect few jobs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controller.decision import Decision
from controller.schedulers.common.paths_by_job import PathsByJob
from testbed.engines.replay.running_job import ReplayedJob


class ChangedJobs:
    """Remembers the last decision."""

    def __init__(self) -> None:
        self._before = Decision(paths=PathsByJob({}))
        self._by_job = True

    def by(self, decision: Decision, running: Mapping[str, ReplayedJob], come: Iterable[ReplayedJob]) -> list[str]:
        """The jobs that send and for which ``decision`` may differ from the last one; those that ``come`` too.

        All of them unless both decisions keep paths by job and name levels by job.
        """
        before, was_by_job = self._before, self._by_job
        by_job = isinstance(decision.paths, PathsByJob) and decision.levels.keys() <= running.keys()
        self._before, self._by_job = decision, by_job
        if not (by_job and was_by_job):
            return [name for name, each in running.items() if each.traffic.sends]
        told = _with_other_paths(before, decision) | {each.name for each in come}
        for one, other in (
            (before.levels, decision.levels),
            (before.periods, decision.periods),
            (before.shifts, decision.shifts),
        ):
            told |= {name for name, _ in one.items() ^ other.items()}
        return sorted(name for name in told if name in running and running[name].traffic.sends)


def _with_other_paths(before: Decision, now: Decision) -> set[str]:
    """The jobs whose paths are no longer the same object."""
    assert isinstance(before.paths, PathsByJob) and isinstance(now.paths, PathsByJob)
    known = before.paths.by_job
    return {job for job, paths in now.paths.by_job.items() if known.get(job) is not paths}
