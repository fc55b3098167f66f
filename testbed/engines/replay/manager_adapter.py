"""A cluster manager for the replay: jobs of a trace go into its ledger, its actions come out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from testbed.engines.replay.outcome import refusals
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
from workloads.managers.policies.ring_time import ring_of_more

StageTimes = Callable[[ReplayRequest], tuple[float, float]]
"""ReplayRequest -> seconds of compute and of communication of an iteration alone, for parts that ask."""
_NAMED: Final = 20
"""How many jobs a line names."""


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
            ring=None if communication_s > 0.0 else self._ring_of_more(request),
            virtual_cluster=request.virtual_cluster,
            user=request.user,
            model=request.model,
            min_gpus=request.min_gpus,
            max_gpus=request.max_gpus,
            opportunistic=request.opportunistic,
        )

    def _ring_of_more(self, request: ReplayRequest) -> tuple[int, float] | None:
        most = len(self._ledger.state.structure.gpus)
        return ring_of_more(request.gpus, most, lambda gpus: self._stage_times(replace(request, gpus=gpus))[1])

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
        """Lines: refused jobs, mechanisms without input, input without use, jobs that hold some of their GPUs now."""
        lines = (refusals(self.refused), *self._inputs.notes(self._manager), *self._held())
        return tuple(line for line in lines if line)

    def _held(self) -> Iterator[str]:
        """Jobs that hold some of their GPUs and wait for the rest, all in one line."""
        holding = [each for each in self._ledger.state.running.values() if each.holding]
        if not holding:
            return
        named = [f"{each.name} {len(each.gpus)} of {each.job.gpus}" for each in holding[:_NAMED]]
        more = [f"{len(holding) - _NAMED} more"] if len(holding) > _NAMED else []
        yield f"at the end jobs hold some of their GPUs and wait for the rest: {', '.join((*named, *more))}"

    @property
    def refused(self) -> Mapping[str, str]:
        """Jobs that could never start, each with the reason."""
        return self._ledger.refused

    def waits(self, name: str) -> Mapping[str, float]:
        """Cause -> seconds that a job has waited."""
        return self._ledger.waits(name)
