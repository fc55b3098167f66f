"""A cluster manager behind the replay: keeps the state of the cluster and carries out what the manager says."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from testbed.errors import RunFailedError
from testbed.replay.replay import Request
from topologies.fabric import Fabric
from workloads.managers.actions import Start
from workloads.managers.cluster import empty_cluster
from workloads.managers.jobs import Waiting
from workloads.managers.manager import Manager
from workloads.managers.points import Ended, Event, Submitted

StageTimes = Callable[[Request], tuple[float, float]]
"""Request -> seconds of compute and of communication of an iteration alone, for placers that ask."""


class ManagedPlacing:
    """Places jobs by ``manager``. ``refused``: jobs that could never start, each with the reason."""

    def __init__(self, manager: Manager, fabric: Fabric, stage_times: StageTimes) -> None:
        self._manager = manager
        self._state = empty_cluster(fabric)
        manager.check(self._state.structure)
        self._stage_times = stage_times
        self._requests: dict[str, Request] = {}
        self._waiting: dict[str, Waiting] = {}
        self._events: list[Event] = []
        self.refused: dict[str, str] = {}

    def submitted(self, request: Request, now_s: float) -> None:
        """Take a job in, unless it could never start."""
        compute_s, communication_s = self._stage_times(request)
        asked = Waiting(
            request.name, request.gpus, request.submit_s, request.duration_s, remaining_s=request.duration_s,
            compute_s=compute_s, communication_s=communication_s, virtual_cluster=request.virtual_cluster,
            user=request.user,
        )  # fmt: skip
        why = self._manager.refusal(self._state.structure, asked)
        if why is not None:
            self.refused[request.name] = why
            return
        self._requests[request.name], self._waiting[request.name] = request, asked
        self._events.append(Submitted(request.name))

    def ended(self, name: str, now_s: float) -> None:
        """Free a job's GPUs."""
        self._state = self._state.at(now_s).end(name)
        self._events.append(Ended(name))

    def starts(self, now_s: float) -> Sequence[tuple[Request, tuple[str, ...]]]:
        """Ask the manager about everything that has happened; ``RunFailedError`` for more than a start."""
        found: list[tuple[Request, tuple[str, ...]]] = []
        for event in self._events if self._waiting else ():
            state = self._state.at(now_s)
            for action in self._manager.decide(state, tuple(self._waiting.values()), event):
                if not isinstance(action, Start):
                    raise RunFailedError(f"a replay starts jobs, it cannot {type(action).__name__.lower()} them")
                state = state.after(action)
                del self._waiting[action.job]
                found.append((self._requests.pop(action.job), action.gpus))
            self._state = state
        self._events.clear()
        return found

    @property
    def waiting(self) -> int:
        """Jobs that have come and not started."""
        return len(self._waiting)
