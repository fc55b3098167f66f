"""A scheduler of another package: what it raises, or decides wrongly, is one line that says where in its code."""

from __future__ import annotations

from typing import get_args

from controller.decision import ClusterView, Decision, Event, Scheduler, as_scheduler
from controller.decision_check import problem_of
from workloads.plugin_errors import PluginCode, PluginError

_ATTRIBUTES = ("name", "summary", "events", "every_s", "decides", "source", "alone", "switches_hash")


class GuardedScheduler(Scheduler):
    """Decides as ``made``, whose code is ``code``; raises :class:`PluginError` if that raises or decides wrongly."""

    def __init__(self, made: object, code: PluginCode) -> None:
        """Raise ``ValueError``, one line, if its ``events`` are no types of events."""
        self._made, self._code = made, code
        self._function = getattr(made, "decide", made)
        try:
            with code.guarded(type(made)):
                self._scheduler = as_scheduler(made)
        except PluginError as error:
            raise ValueError(str(error)) from error
        for wrong in [event for event in self._scheduler.events if event not in get_args(Event)]:
            problem = f"has {wrong!r} in events, expected types of events such as JobArrived"
            raise ValueError(str(code.returned(problem, type(made))))
        own = (key for key in _ATTRIBUTES if hasattr(self._scheduler, key))
        vars(self).update({key: getattr(self._scheduler, key) for key in own})

    def __getattr__(self, name: str) -> object:
        return getattr(vars(self)["_made"], name)

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return the scheduler's decision, which can be carried out."""
        with self._code.guarded(self._function):
            decision = self._scheduler.decide(view, event)
            problem = problem_of(decision, view, switches_hash=self.switches_hash)
        if problem:
            raise self._code.returned(f"{problem} (at {event})", self._function)
        return decision
