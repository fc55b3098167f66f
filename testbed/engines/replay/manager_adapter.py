"""A cluster manager for the replay: jobs of a trace go into its ledger, its actions come out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from testbed.engines.replay.running_job import ReplayRequest
from testbed.errors import RunFailedError
from topologies.fabric import Fabric
from workloads.managers.actions import Action
from workloads.managers.jobs import Waiting
from workloads.managers.ledger import Ledger
from workloads.managers.manager import Manager

StageTimes = Callable[[ReplayRequest], tuple[float, float]]
"""ReplayRequest -> seconds of compute and of communication of an iteration alone, for parts that ask."""


class ManagedPlacing:
    """Places jobs by ``manager``. ``refused``: jobs that could never start, each with the reason."""

    def __init__(self, manager: Manager, fabric: Fabric, stage_times: StageTimes) -> None:
        self._ledger = Ledger(manager, fabric)
        self._stage_times = stage_times

    def submitted(self, request: ReplayRequest, now_s: float) -> bool:
        """Take a job in, unless it could never start."""
        compute_s, communication_s = self._stage_times(request)
        return self._ledger.submit(
            Waiting(
                request.name,
                request.gpus,
                request.submit_s,
                request.duration_s,
                remaining_s=request.duration_s,
                compute_s=compute_s,
                communication_s=communication_s,
                virtual_cluster=request.virtual_cluster,
                user=request.user,
                model=request.model,
            )
        )

    def ended(self, name: str, now_s: float) -> None:
        """Free a job's GPUs."""
        self._ledger.end(name, now_s)

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
    def refused(self) -> Mapping[str, str]:
        """Jobs that could never start, each with the reason."""
        return self._ledger.refused

    def waits(self, name: str) -> Mapping[str, float]:
        """Cause -> seconds that a job has waited."""
        return self._ledger.waits(name)
