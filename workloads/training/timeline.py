"""When each stage of a pipeline does what, by itself: operations that take given times, and results passed on.

Bubbles are not put in: they are what is left between operations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from workloads.training.schedules import Operation, Order, Schedule, before

Seconds = Callable[[int, Operation], float]
"""(stage, operation) -> seconds."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """``begins`` and ``ends`` of every operation, by stage, in the order of the schedule; seconds from the first."""

    orders: tuple[Order, ...]
    begins: tuple[tuple[float, ...], ...]
    ends: tuple[tuple[float, ...], ...]

    @property
    def seconds(self) -> float:
        """From the first operation's begin to the last one's end."""
        return max(ends[-1] for ends in self.ends) - min(begins[0] for begins in self.begins)

    @property
    def busy_s(self) -> tuple[float, ...]:
        """By stage: the sum of its operations."""
        pairs = (zip(begins, ends, strict=True) for begins, ends in zip(self.begins, self.ends, strict=True))
        return tuple(sum(end - begin for begin, end in each) for each in pairs)

    @property
    def bubble(self) -> float:
        """Idle time over the time of the work of the busiest stage (Narayanan et al., SC'21, section 2.2)."""
        busiest = max(self.busy_s)
        return self.seconds / busiest - 1.0


def timeline(schedule: Schedule, stages: int, microbatches: int, takes: Seconds, passes: float = 0.0) -> Timeline:
    """Return what happens when: an operation of a stage ``takes`` seconds, its result reaches the next after
    ``passes``.

    Raises ``ValueError`` where the schedule cannot be, and ``RuntimeError`` if its operations wait for each other.
    """
    orders = schedule.orders(stages, microbatches)
    chunks, two_way = schedule.chunks, schedule.two_way
    done: list[dict[Operation, float]] = [{} for _ in orders]
    begins: list[list[float]] = [[] for _ in orders]
    left = sum(len(order) for order in orders)
    while left:
        before_round = left
        for stage, order in enumerate(orders):
            while len(begins[stage]) < len(order):
                operation = order[len(begins[stage])]
                ready = _ready(before(operation, stage, stages, chunks, two_way), stage, done, passes)
                if ready is None:
                    break
                begin = max(ready, _last(done[stage], order, len(begins[stage])))
                begins[stage].append(begin)
                done[stage][operation] = begin + takes(stage, operation)
                left -= 1
        if left == before_round:
            raise RuntimeError(f"schedule '{schedule.name}': operations wait for each other")
    ends = tuple(tuple(done[stage][each] for each in order) for stage, order in enumerate(orders))
    return Timeline(orders, tuple(tuple(each) for each in begins), ends)


def _ready(
    needed: tuple[int, Operation] | None, stage: int, done: Sequence[dict[Operation, float]], passes: float
) -> float | None:
    """When what is ``needed`` is there; None if that is not known yet."""
    if needed is None:
        return 0.0
    end = done[needed[0]].get(needed[1])
    return None if end is None else end + (passes if needed[0] != stage else 0.0)


def _last(done: dict[Operation, float], order: Order, count: int) -> float:
    return done[order[count - 1]] if count else 0.0
