"""Pipeline schedules: in which order each stage works through its microbatches. Nothing here takes time.

An operation is the forward or backward pass of a microbatch through the layers of a chunk: each of ``chunks`` parts of
a model goes through all stages in turn (interleaving). A zero-bubble schedule computes the gradients of weights as
operations of their own.

=================  =====================================================================================================
``gpipe``          all forward passes, then all backward ones (Huang et al., NeurIPS 2019)
``1f1b``           one forward, one backward (PipeDream-Flush; Narayanan et al., SC'21, section 2.2.1)
``interleaved``    the same with several chunks per stage (SC'21, section 2.2.2; orders as in Megatron-LM)
``zero-bubble``    ZB-H1 (Qi et al., ICLR 2024): gradients of weights fill what 1F1B leaves empty, at its memory
``dualpipe``       DeepSeek-V3 (2024), section 3.2.1: microbatches from both ends, each stage holds two chunks
=================  =====================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

Kind = Literal["forward", "backward", "weights"]


@dataclass(frozen=True, slots=True, order=True)
class Operation:
    """A pass of ``microbatch`` through ``chunk``; "backward" without "weights" of its own computes both gradients."""

    kind: Kind
    microbatch: int
    chunk: int = 0


Order = tuple[Operation, ...]
"""What one stage does, first to last."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule by ``name``; ``chunks`` per stage."""

    name: str = "1f1b"
    chunks: int = 1

    def __post_init__(self) -> None:
        if self.name not in ORDERS:
            raise ValueError(f"schedule is '{self.name}', expected one of: {', '.join(ORDERS)}")
        if self.name == "interleaved" and self.chunks < 2:
            raise ValueError(f"chunks is {self.chunks}, expected at least 2 for an interleaved schedule")
        if self.name not in ("interleaved", "dualpipe") and self.chunks != 1:
            raise ValueError(f"chunks is {self.chunks}, expected 1 for schedule '{self.name}'")

    @property
    def splits_backward(self) -> bool:
        """Whether gradients of weights are operations of their own."""
        return self.name in ("zero-bubble", "dualpipe")

    @property
    def two_way(self) -> bool:
        """Whether every second microbatch begins at the last stage."""
        return self.name == "dualpipe"

    def orders(self, stages: int, microbatches: int) -> tuple[Order, ...]:
        """Return the order of each stage; ``ValueError`` as :meth:`check`."""
        self.check(stages, microbatches)
        return ORDERS[self.name](stages, microbatches, self.chunks)

    def check(self, stages: int, microbatches: int) -> None:
        """Raise ``ValueError`` if the schedule cannot divide the microbatches or the stages."""
        if self.name == "interleaved" and microbatches % stages:
            what = f"microbatches is {microbatches} with {stages} stages"
            raise ValueError(f"{what}, expected a multiple of {stages} for an interleaved schedule")
        if self.two_way and microbatches % 2:
            raise ValueError(f"microbatches is {microbatches}, expected an even number for schedule 'dualpipe'")
        if self.two_way and stages % 2:
            raise ValueError(f"pipeline is {stages}, expected an even number for schedule 'dualpipe'")


def before(operation: Operation, stage: int, stages: int, chunks: int, two_way: bool) -> tuple[int, Operation] | None:
    """What must have passed on its result before ``operation`` of ``stage`` begins: (stage, operation); None for none.

    The first forward pass waits for nothing; the last chunk's backward pass for its own forward pass.
    """
    kind, microbatch, chunk = operation.kind, operation.microbatch, operation.chunk
    if kind == "weights":
        return stage, Operation("backward", microbatch, chunk)
    found = _neighbour(operation, stage, stages, chunks, two_way, -1)
    if found is None and kind == "backward":
        return stage, Operation("forward", microbatch, chunk)
    return found


def after(operation: Operation, stage: int, stages: int, chunks: int, two_way: bool) -> tuple[int, Operation] | None:
    """The operation of another stage that waits for ``operation`` of ``stage``; None if there is none."""
    if operation.kind == "weights" or stages == 1:
        return None
    return _neighbour(operation, stage, stages, chunks, two_way, 1)


def _neighbour(
    operation: Operation, stage: int, stages: int, chunks: int, two_way: bool, way: int
) -> tuple[int, Operation] | None:
    """The same pass at the next stage (``way`` 1) or the one before (-1), with the chunk that it goes on with there."""
    kind, microbatch, chunk = operation.kind, operation.microbatch, operation.chunk
    down = two_way and chunk == 1
    step = way if (kind == "forward") != down else -way
    if 0 <= stage + step < stages:
        return stage + step, Operation(kind, microbatch, chunk)
    other = chunk + step
    if two_way or not 0 <= other < chunks:
        return None
    return (0 if step == 1 else stages - 1), Operation(kind, microbatch, other)


def _gpipe(stages: int, microbatches: int, _chunks: int) -> tuple[Order, ...]:
    numbers = range(microbatches)
    order = (*(Operation("forward", n) for n in numbers), *(Operation("backward", n) for n in numbers))
    return (order,) * stages


def _one_forward_one_backward(stages: int, microbatches: int, _chunks: int) -> tuple[Order, ...]:
    forward = [Operation("forward", number) for number in range(microbatches)]
    backward = [Operation("backward", number) for number in range(microbatches)]
    return tuple(_alternating(forward, backward, stages - 1 - stage) for stage in range(stages))


def _interleaved(stages: int, microbatches: int, chunks: int) -> tuple[Order, ...]:
    numbers = [_place(k, stages, chunks) for k in range(microbatches * chunks)]
    forward = [Operation("forward", microbatch, chunk) for microbatch, chunk in numbers]
    backward = [Operation("backward", microbatch, chunks - 1 - chunk) for microbatch, chunk in numbers]
    ahead = [2 * (stages - 1 - stage) + (chunks - 1) * stages for stage in range(stages)]
    return tuple(_alternating(forward, backward, each) for each in ahead)


def _place(k: int, stages: int, chunks: int) -> tuple[int, int]:
    """Microbatch and chunk of the k-th pass: groups of as many microbatches as stages go through chunk after chunk."""
    group, within = divmod(k, stages * chunks)
    return group * stages + within % stages, within // stages


def _alternating(forward: list[Operation], backward: list[Operation], ahead: int) -> Order:
    """``ahead`` forward passes, then forward and backward in turn, then what is left of the backward ones."""
    ahead = min(ahead, len(forward))
    turns = len(forward) - ahead
    steady = [each for pair in zip(forward[ahead:], backward[:turns], strict=True) for each in pair]
    return (*forward[:ahead], *steady, *backward[turns:])


def _zero_bubble(stages: int, microbatches: int, _chunks: int) -> tuple[Order, ...]:
    held = [stages - stage for stage in range(stages)]
    return _by_readiness(stages, microbatches, 1, two_way=False, most_ahead=lambda stage, _chunk: held[stage])


def _dualpipe(stages: int, microbatches: int, _chunks: int) -> tuple[Order, ...]:
    """Chunk 0 goes up the stages, chunk 1 down; each direction holds as many microbatches as 1F1B would."""

    def most_ahead(stage: int, chunk: int) -> int:
        return stages - stage if chunk == 0 else stage + 1

    return _by_readiness(stages, microbatches // 2, 2, two_way=True, most_ahead=most_ahead)


def _by_readiness(
    stages: int, microbatches: int, chunks: int, *, two_way: bool, most_ahead: Callable[[int, int], int]
) -> tuple[Order, ...]:
    """What a stage does next, all operations taking equally long: backward before forward before weights.

    ``most_ahead`` (stage, chunk): microbatches that may have gone forward and not yet back.
    """
    ends: list[dict[Operation, int]] = [{} for _ in range(stages)]
    todo = [_Todo(microbatches, chunks) for _ in range(stages)]
    orders: list[list[Operation]] = [[] for _ in range(stages)]
    now = 0
    while any(not each.empty for each in todo):
        chosen = []
        for stage in range(stages):
            ready = [each for each in todo[stage].next if _is_ready(each, stage, ends, now, chunks, two_way)]
            ready = [each for each in ready if todo[stage].may(each, most_ahead(stage, each.chunk))]
            if ready:
                chosen.append((stage, min(ready, key=lambda each: (_RANK[each.kind], each.microbatch, each.chunk))))
        for stage, operation in chosen:
            todo[stage].take(operation)
            orders[stage].append(operation)
            ends[stage][operation] = now + 1
        now += 1
    return tuple(tuple(order) for order in orders)


_RANK: Final = {"backward": 0, "forward": 1, "weights": 2}


class _Todo:
    """What one stage has yet to do: the next operation of each kind and chunk."""

    def __init__(self, microbatches: int, chunks: int) -> None:
        self._count = microbatches
        self._done = {(kind, chunk): 0 for kind in _RANK for chunk in range(chunks)}

    @property
    def empty(self) -> bool:
        return all(done >= self._count for done in self._done.values())

    @property
    def next(self) -> list[Operation]:
        return [Operation(kind, done, chunk) for (kind, chunk), done in self._done.items() if done < self._count]  # type: ignore[arg-type]

    def may(self, operation: Operation, most_ahead: int) -> bool:
        ahead = self._done["forward", operation.chunk] - self._done["backward", operation.chunk]
        return operation.kind != "forward" or ahead < most_ahead

    def take(self, operation: Operation) -> None:
        self._done[operation.kind, operation.chunk] += 1


def _is_ready(
    operation: Operation, stage: int, ends: list[dict[Operation, int]], now: int, chunks: int, two_way: bool
) -> bool:
    needed = before(operation, stage, len(ends), chunks, two_way)
    return needed is None or ends[needed[0]].get(needed[1], now + 1) <= now


ORDERS: Final[Mapping[str, Callable[[int, int, int], tuple[Order, ...]]]] = MappingProxyType(
    {
        "1f1b": _one_forward_one_backward,
        "gpipe": _gpipe,
        "interleaved": _interleaved,
        "zero-bubble": _zero_bubble,
        "dualpipe": _dualpipe,
    }
)
"""Name -> the orders of (stages, microbatches, chunks)."""
