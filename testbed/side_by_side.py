"""Runs that are computed, several at a time: each in a process of its own, with one progress for all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from multiprocessing import Array, parent_process
from typing import Any, Final, TypeVar

from testbed.machine.process_pool import started
from testbed.progress import Progress

Result = TypeVar("Result")
Tell = Callable[[Mapping[str, Any]], None]
Task = Callable[[Tell], Result]

_LOOK_EVERY_S: Final = 0.5
_tasks: Sequence[Task[Any]] = ()
"""What processes take their work from: they have a copy of this one's memory, and experiments cannot be sent."""
_done: Any = ()
"""Shared with them: the share of each task that is done."""


def processes_for(tasks: int) -> int:
    """How many processes ``tasks`` may have: a CPU each, and one if this is such a process already."""
    return 1 if parent_process() is not None else min(tasks, len(os.sched_getaffinity(0)))


def each_in_a_process(tasks: Sequence[Task[Result]], processes: int, progress: Progress) -> list[Result]:
    """The result of each of ``tasks``, in order; each is called with what takes its engine's messages.

    What a task raises is raised here, once the others have been ended.
    """
    global _tasks, _done
    _tasks, _done = tasks, Array("d", len(tasks), lock=False)
    try:
        with started(processes, lambda pool: [pool.submit(_one, place) for place in range(len(tasks))]) as work:
            for ended in _as_they_end(work):
                progress.advance_to(sum(_done), f"{ended} of {len(tasks)} done")
            return [each.result() for each in work]
    finally:
        _tasks, _done = (), ()


def _as_they_end(work: Sequence[Future[Result]]) -> Iterator[int]:
    """How many have ended, from time to time until all have; raises what one of them has raised."""
    left = set(work)
    while left:
        ended, left = wait(left, _LOOK_EVERY_S, FIRST_COMPLETED)
        for each in ended:
            each.result()
        yield len(work) - len(left)


def _one(place: int) -> Any:
    """In a process: the result of a task."""

    def tell(message: Mapping[str, Any]) -> None:
        total = message.get("total")
        if total:
            _done[place] = min(1.0, float(message.get("value", 0.0)) / float(total))

    result = _tasks[place](tell)
    _done[place] = 1.0
    return result
