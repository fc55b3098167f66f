"""``python -m testbed.engines.emulation.foreign_plugins.plugin_main KIND``: the process of a plug-in.

It reads questions from standard input, a line of JSON each.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from typing import Any, Final

from controller.decision import ClusterView, Scheduler, Step, StepEnded, StepStarted
from controller.schedulers.registry import create
from testbed.engines.common.managed_jobs import ManagedJobs
from testbed.experiment.experiment import Managed
from topologies.dataclass_json import decode, encode
from topologies.fabric import Fabric
from workloads.job import Job

Question = Mapping[str, Any]
Answer = dict[str, Any]


class HostedScheduler:
    """A scheduler that is called at communication steps."""

    def __init__(self, question: Question) -> None:
        self._scheduler: Scheduler = create(str(question["name"]), question["options"], question["seed"])
        self._view: ClusterView | None = None

    def first(self) -> Answer:
        """Tell at which events it is called, and how often as time passes."""
        return {"events": [event.__name__ for event in self._scheduler.events], "every_s": self._scheduler.every_s}

    def answer(self, question: Question) -> Answer:
        """Take note of fabric and jobs if they are told; decide."""
        view = self._view
        if "fabric" in question:
            fabric = decode(Fabric, question["fabric"], "fabric")
            known = ClusterView(fabric, {}, question["levels"], question["seed"])
            view = known if view is None else replace(view, fabric=fabric)
        if view is None:
            raise ValueError("the first question names no fabric")
        if "jobs" in question:
            view = replace(view, jobs=decode(dict[str, Job], question["jobs"], "jobs"))
        view = replace(view, steps=decode(dict[str, Step], question["steps"], "steps"), time_s=question["time_s"])
        event = (StepStarted if question["begins"] else StepEnded)(question["job"], question["phase"])
        decision = self._scheduler.decide(view, event)
        self._view = replace(view, decision=decision)
        return {"decision": encode(decision)}


class HostedManager:
    """Jobs under a manager with parts of other packages."""

    def __init__(self, question: Question) -> None:
        managed = decode(Managed, question["managed"], "managed")
        self._jobs = ManagedJobs(managed, decode(Fabric, question["fabric"], "fabric"), question["seed"])

    def first(self) -> Answer:
        """How many jobs there are, and what is still to do."""
        return {"total": self._jobs.total, **self._state()}

    def answer(self, question: Question) -> Answer:
        """Do what is asked with :class:`ManagedJobs`."""
        match question["what"]:
            case "decide":
                made: Mapping[str, int] = question["made"]
                changes = self._jobs.decide(question["now_s"], lambda stint: made.get(stint, 0))
                return {"changes": encode(changes), **self._state()}
            case "ended":
                self._jobs.ended(question["stint"], question["now_s"])
                return self._state()
            case "hosts":
                self._jobs.hosts_changed(question["now_s"], question["leaving"], question["joining"])
                return self._state()
            case _:
                outcomes = encode(self._jobs.outcomes(question["now_s"]))
                return {"outcomes": outcomes, "stints_of": encode(self._jobs.stints_of())}

    def _state(self) -> Answer:
        next_s = self._jobs.next_s()
        return {
            "unfinished": self._jobs.unfinished,
            "refused": dict(self._jobs.refused),
            "next_s": None if next_s == inf else next_s,
        }


KINDS: Final[Mapping[str, Callable[[Question], HostedScheduler | HostedManager]]] = {
    "scheduler": HostedScheduler,
    "manager": HostedManager,
}


def main() -> int:
    """Make the plug-in of the first question, then answer the others until there are no more."""
    # What a plug-in prints goes into the run's log.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    hosted: HostedScheduler | HostedManager | None = None
    for line in sys.stdin:
        try:
            question = json.loads(line)
            if hosted is None:
                hosted = KINDS[sys.argv[1]](question)
                answer = hosted.first()
            else:
                answer = hosted.answer(question)
        except Exception as error:
            traceback.print_exc()  # into the run's log
            answer = {"problem": str(error) or type(error).__name__}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
