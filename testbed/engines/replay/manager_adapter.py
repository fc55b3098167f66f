"""A cluster manager for the replay: jobs of a trace go into its ledger, its actions come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from testbed.engines.replay.running_job import ReplayRequest
from testbed.engines.replay.unused_mechanisms import JobInputs
from testbed.errors import RunFailedError
from topologies.fabric import Fabric
from workloads.job import Job
from workloads.managers.account import Account
from workloads.managers.actions import Action
from workloads.managers.capacities.gpu_types import slowed
from workloads.managers.jobs import Waiting
from workloads.managers.ledger import Ledger
from workloads.managers.manager import Manager

StageTimes = Callable[[ReplayRequest], tuple[float, float]]
"""ReplayRequest -> seconds of compute and of communication of an iteration alone, for parts that ask."""


class ManagedPlacing:
    """Places jobs by ``manager``. ``refused``: jobs that could never start, each with the reason."""

    def __init__(self, manager: Manager, fabric: Fabric, stage_times: StageTimes) -> None:
        self._ledger = Ledger(manager, fabric)
        self._manager, self._inputs = manager, JobInputs()
        self._stage_times = stage_times

    def submitted(self, request: ReplayRequest, now_s: float) -> bool:
        """Take a job in, unless it could never start."""
        job = self._asks(request, request.duration_s)
        self._inputs.add(job)
        return self._ledger.submit(job)

    def _asks(self, request: ReplayRequest, left_s: float) -> Waiting:
        """The job as the manager sees it; an estimate of its time is what the trace records of all its attempts."""
        compute_s, communication_s = self._stage_times(request)
        return Waiting(
            request.name,
            request.gpus,
            request.submit_s,
            request.duration_s,
            remaining_s=left_s,
            compute_s=compute_s,
            communication_s=communication_s,
            virtual_cluster=request.virtual_cluster,
            user=request.user,
            model=request.model,
            min_gpus=request.min_gpus,
            max_gpus=request.max_gpus,
            opportunistic=request.opportunistic,
        )

    def ended(self, request: ReplayRequest, account: Account, now_s: float) -> bool:
        """End an attempt: whether the job is done; if not, it has failed and waits again from its beginning."""
        self._ledger.end(request.name, now_s)
        if account.attempts == request.attempts:
            account.end(now_s)
            return True
        left_s = request.attempt_s * (request.attempts - account.attempts)
        again = replace(self._asks(request, left_s), waiting_since_s=now_s, attempts=account.attempts)
        self._ledger.submit(again)
        account.fail(now_s)
        return False

    def slowed(self, job: Job) -> Job:
        """Return the job as it computes on its GPUs, of whatever type they are."""
        structure = self._ledger.state.structure
        return slowed(job, structure.fabric, structure.gpu_types)

    def next_s(self) -> float:
        """The next time to call the manager even if nothing happens."""
        return self._ledger.next_s()

    def actions(self, now_s: float, remaining: Callable[[str], float]) -> Sequence[Action]:
        """Let the manager decide on everything that has happened; ``RunFailedError`` if it asks for the impossible."""
        try:
            return self._ledger.decide(now_s, remaining)
        except ValueError as error:
            raise RunFailedError(f"the cluster manager failed: {error}") from error

    @property
    def waiting(self) -> int:
        """Jobs that were submitted and do not run."""
        return len(self._ledger.waiting)

    @property
    def notes(self) -> tuple[str, ...]:
        """A line per mechanism of the manager that the jobs so far leave without input."""
        return self._inputs.notes(self._manager)

    @property
    def refused(self) -> Mapping[str, str]:
        """Jobs that could never start, each with the reason."""
        return self._ledger.refused

    def waits(self, name: str) -> Mapping[str, float]:
        """Cause -> seconds that a job has waited."""
        return self._ledger.waits(name)
