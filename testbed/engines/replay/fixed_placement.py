"""Replays at a fixed placement: record which job starts when on which GPUs in one replay, play it in another.

End times feed placement: a job that ends a moment earlier frees other GPUs for the next one, and two replays whose
rates are nearly equal diverge. At the same placement only the rates are left to differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from testbed.engines.replay.manager_adapter import ManagedPlacing, StageTimes
from testbed.errors import RunFailedError
from topologies.fabric import Fabric
from workloads.managers.actions import Action, Loan, Promote, Reclaim, Requeue, Start
from workloads.managers.capacities.planned import Steady
from workloads.managers.manager import Manager
from workloads.managers.placers.first_free import FirstFree
from workloads.managers.policies.recorded import Recorded, RecordedStart
from workloads.managers.queues.fifo import FifoBackfill


class RecordingPlacing(ManagedPlacing):
    """Places jobs by ``manager``, and records their starts."""

    def __init__(self, manager: Manager, fabric: Fabric, stage_times: StageTimes) -> None:
        super().__init__(manager, fabric, stage_times)
        self._starts: list[RecordedStart] = []

    def actions(self, now_s: float, remaining: Callable[[str], float]) -> Sequence[Action]:
        """As the manager decides; ``RunFailedError`` for what a schedule of starts cannot say."""
        decided = super().actions(now_s, remaining)
        self._starts.extend(start for action in decided if (start := _recorded(action)) is not None)
        return decided

    @property
    def starts(self) -> tuple[RecordedStart, ...]:
        """The starts so far, in order."""
        return tuple(self._starts)


def recorded_manager(starts: Sequence[RecordedStart]) -> Manager:
    """Return a manager that plays ``starts``: the placement of another replay of the same trace and fabric."""
    return Manager(FifoBackfill(), Recorded(starts), FirstFree(), Steady())


def _recorded(action: Action) -> RecordedStart | None:
    match action:
        case Start():
            return RecordedStart(action.job, action.time_s, action.gpus, action.pause_s, action.asked.attempts)
        case Requeue() | Promote() | Loan() | Reclaim():
            return None  # no job's GPUs change
        case _:
            kind = type(action).__name__.lower()
            raise RunFailedError(
                f"a placement can be fixed only for jobs that keep their GPUs to the end: the manager gave the action "
                f"'{kind}' at {action.time_s:.0f} s"
            )
