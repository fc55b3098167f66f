"""A part of a manager from another package: what it raises, or answers wrongly, is one line that says where."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from workloads.managers.actions import Action
from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import CapacityChanged, PlacementRequest, QueuedJob
from workloads.managers.jobs import Placement, Running, Waiting
from workloads.plugin_errors import PluginCode

_END: Final = object()


class GuardedPart:
    """Answers as ``part``, whose code is ``code``; raises ``PluginError`` if that raises or answers wrongly."""

    def __init__(self, part: object, code: PluginCode) -> None:
        self._part, self._code = part, code

    def __getattr__(self, name: str) -> Any:
        value = getattr(vars(self)["_part"], name)
        return partial(self._call, name, value) if callable(value) else value

    def _call(self, name: str, method: Callable[..., object], *arguments: Any) -> object:
        with self._code.guarded(method):
            answer = method(*arguments)
            if name in _ITEMS:
                return self._items(name, method, iter(_iterable(answer)), arguments)
            if name == "eligible":
                answer = tuple(_iterable(answer))
        self._refuse(_PROBLEMS[name](answer, *arguments) if name in _PROBLEMS else "", method)
        return answer

    def _items(
        self, name: str, method: Callable[..., object], items: Iterator[object], arguments: Sequence[Any]
    ) -> Iterator[object]:
        """One by one, as the manager asks for them: a policy may look at what it has returned, a capacity never end."""
        while True:
            with self._code.guarded(method):
                item = next(items, _END)
            if item is _END:
                return
            self._refuse(_ITEMS[name](item, *arguments), method)
            yield item

    def _refuse(self, problem: str, method: Callable[..., object]) -> None:
        if problem:
            raise self._code.returned(f"returned {problem}", method)


def _iterable(answer: object) -> Iterable[object]:
    if not isinstance(answer, Iterable):
        raise TypeError(f"{answer!r} was returned, expected a sequence")
    return answer


def _placement(placement: object, state: ClusterState, job: Waiting, gpus: int) -> str:
    if placement is None:
        return ""
    if not isinstance(placement, Placement):
        return f"{placement!r} for job '{job.name}', expected a Placement or None"
    if len(set(placement.gpus)) != gpus or len(placement.gpus) != gpus:
        return f"{len(set(placement.gpus))} different GPUs for job '{job.name}', expected {gpus}"
    free = {gpu for host in state.structure.hosts for gpu in state.free_on(host)}
    taken = next((gpu for gpu in placement.gpus if gpu not in free), None)
    return "" if taken is None else f"GPU '{taken}' for job '{job.name}', which is not free"


def _resized(placement: object, state: ClusterState, running: Running, gpus: int) -> str:
    return _placement(placement, state.end(running.name), running.job, gpus)


def _eligible(queued: object, _state: ClusterState, waiting: Sequence[Waiting]) -> str:
    names = {job.name for job in waiting}
    for entry in queued if isinstance(queued, tuple) else ():
        if not isinstance(entry, QueuedJob):
            return f"{entry!r}, expected QueuedJob entries"
        if entry.job.name not in names:
            return f"job '{entry.job.name}', which does not wait"
    return ""


def _asked(item: object, state: ClusterState, queued: Sequence[QueuedJob], _event: object) -> str:
    if not isinstance(item, PlacementRequest | Action):
        return f"{item!r}, expected PlacementRequest or an action"
    jobs = (item.job.name,) if isinstance(item, PlacementRequest) else _jobs_of(item)
    known = state.running.keys() | {entry.job.name for entry in queued}
    unknown = next((name for name in jobs if name not in known), None)
    return "" if unknown is None else f"{type(item).__name__} for job '{unknown}', which neither runs nor may start"


def _jobs_of(action: Action) -> tuple[str, ...]:
    """The jobs that an action names."""
    if hasattr(action, "job"):
        return (action.job,)
    return action.jobs if hasattr(action, "jobs") else ()


def _change(item: object, _fabric: object) -> str:
    return "" if isinstance(item, CapacityChanged) else f"{item!r}, expected CapacityChanged"


def _time(at_s: object, *_arguments: object) -> str:
    number = isinstance(at_s, int | float) and not isinstance(at_s, bool) and at_s == at_s
    return "" if number else f"{at_s!r}, expected a time in seconds, infinite for never"


_PROBLEMS: Final[Mapping[str, Callable[..., str]]] = {
    "place": _placement,
    "resized": _resized,
    "eligible": _eligible,
    "wakes_at": _time,
}
"""Method -> what is wrong with (its answer, its arguments), in words."""
_ITEMS: Final[Mapping[str, Callable[..., str]]] = {"decide": _asked, "changes": _change}
"""The same for methods that return one thing after the other."""
