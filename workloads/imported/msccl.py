"""MSCCL's algorithms (XML) as schedules: every step of every thread block, checked to end in what is promised.

Cowan et al., "MSCCLang" (ASPLOS'23). A chunk is followed by what it consists of, the parts of GPUs' inputs that it is
the sum of: an algorithm that ends in anything but the promised sums is refused, and so is one whose steps wait for each
other.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from workloads.imported.errors import WorkloadFileError
from workloads.imported.goal import GoalSchedule, Operation
from workloads.imported.msccl_xml import (
    RECEIVING,
    REDUCING,
    SENDING,
    STORING,
    Algorithm,
    Step,
    ThreadBlock,
    read_algorithm,
)

Chunk = frozenset[tuple[int, int]]
"""What a chunk is the sum of: (GPU, chunk of its input)."""
Place = tuple[int, str, int]
"""GPU, buffer and offset in it."""


def read(path: Path, size: float) -> GoalSchedule:
    """Return the schedule of the algorithm in ``path`` over ``size`` bytes a GPU.

    Raises :class:`WorkloadFileError` naming the line that is wrong, or what the algorithm does not end in.
    """
    return _Run(read_algorithm(path, PROMISES), size).schedule()


class _Run:
    """Carries the steps out, on sums in place of numbers, and notes what is sent."""

    def __init__(self, algorithm: Algorithm, size: float) -> None:
        self._algorithm = algorithm
        self._chunk_bytes = size / algorithm.chunks
        self._held: dict[Place, Chunk] = {}
        for gpu in range(algorithm.gpus):
            for chunk in range(algorithm.inputs.get(gpu, 0)):
                self._held[self._place(gpu, "i", chunk)] = frozenset([(gpu, chunk)])
        self._done: dict[tuple[int, int], int] = dict.fromkeys(algorithm.blocks, 0)
        self._operations: list[Operation] = []
        self._last: dict[tuple[int, int, int], int] = {}
        """GPU, thread block and step -> the operation that it ends with."""
        self._under_way: dict[tuple[int, int, int], deque[tuple[list[Chunk], int]]] = defaultdict(deque)
        """Sender, receiver and channel -> chunks and tag of each message that was sent and not received."""

    def schedule(self) -> GoalSchedule:
        """Return all operations, once every step is through and the promise kept."""
        going = True
        while going:
            going = False
            for key, block in self._algorithm.blocks.items():
                while self._done[key] < len(block.steps) and self._ready(block, block.steps[self._done[key]]):
                    self._carry_out(block, self._done[key])
                    self._done[key] += 1
                    going = True
        stuck = [(key, block) for key, block in self._algorithm.blocks.items() if self._done[key] < len(block.steps)]
        if stuck:
            (gpu, number), block = stuck[0]
            line = block.steps[self._done[gpu, number]].line
            what = f"gpu {gpu}, tb {number} waits for ever at step {self._done[gpu, number]}"
            raise WorkloadFileError(self._algorithm.file, line, what, "steps that can all be carried out")
        if left := next((key for key, messages in self._under_way.items() if messages), None):
            what = f"gpu {left[1]} does not receive all that gpu {left[0]} sends on channel {left[2]}"
            raise WorkloadFileError(self._algorithm.file, None, what, "a receive for each send")
        self._keep_promise()
        by_rank = sorted(range(len(self._operations)), key=lambda place: self._operations[place].rank)
        return _in_ranks(self._algorithm, self._operations, by_rank)

    def _place(self, gpu: int, buffer: str, offset: int) -> Place:
        """Where a chunk is; in place, inputs are part of the outputs."""
        if not self._algorithm.in_place or buffer != "i":
            return gpu, buffer, offset
        shift = gpu * self._algorithm.inputs.get(gpu, 0) if self._algorithm.collective == "allgather" else 0
        return gpu, "o", offset + shift

    def _ready(self, block: ThreadBlock, step: Step) -> bool:
        if step.waits is not None and self._done.get((block.gpu, step.waits[0]), -1) <= step.waits[1]:
            return False
        return step.type not in RECEIVING or bool(self._under_way[block.receive, block.gpu, block.channel])

    def _carry_out(self, block: ThreadBlock, number: int) -> None:
        step = block.steps[number]
        needs = [self._last[block.gpu, block.number, number - 1]] if number else []
        if step.waits is not None:
            needs.append(self._last[block.gpu, *step.waits])
        chunks: list[Chunk] = []
        if step.type in RECEIVING:
            chunks, tag = self._under_way[block.receive, block.gpu, block.channel].popleft()
            if len(chunks) != step.count:
                raise self._wrong(step, f"{step.count} chunks of {len(chunks)} that are sent", "as many")
            size = self._bytes(step.count)
            needs = [self._add(Operation(block.gpu, "recv", size, block.receive, tag), needs)]
        elif step.type != "nop":
            chunks = self._read(block.gpu, step, step.source)
        if step.type in REDUCING:
            own = self._read(block.gpu, step, step.target if step.type == "re" else step.source)
            if any(mine & other for mine, other in zip(own, chunks, strict=True)):
                raise self._wrong(step, "a part is added a second time", "each part once")
            chunks = [mine | other for mine, other in zip(own, chunks, strict=True)]
        if step.type in STORING:
            buffer, offset = step.target
            for place, chunk in enumerate(chunks):
                self._held[self._place(block.gpu, buffer, offset + place)] = chunk
        if step.type in SENDING:
            tag = len(self._operations)
            self._under_way[block.gpu, block.send, block.channel].append((chunks, tag))
            needs = [self._add(Operation(block.gpu, "send", self._bytes(step.count), block.send, tag), needs)]
        elif step.type not in RECEIVING:
            needs = [self._add(Operation(block.gpu, "calc", 0), needs)]
        self._last[block.gpu, block.number, number] = needs[0]

    def _bytes(self, chunks: int) -> int:
        return max(1, round(chunks * self._chunk_bytes))

    def _read(self, gpu: int, step: Step, where: tuple[str, int]) -> list[Chunk]:
        buffer, offset = where
        found = [self._held.get(self._place(gpu, buffer, offset + each)) for each in range(step.count)]
        if any(chunk is None for chunk in found):
            what = f"chunk {offset + found.index(None)} of buffer {buffer} is empty"
            raise self._wrong(step, what, "one that was filled before")
        return [chunk for chunk in found if chunk is not None]

    def _add(self, operation: Operation, needs: Sequence[int]) -> int:
        made = Operation(
            operation.rank, operation.kind, operation.amount, operation.peer, operation.tag, needs=tuple(needs)
        )
        self._operations.append(made)
        return len(self._operations) - 1

    def _keep_promise(self) -> None:
        algorithm = self._algorithm
        for gpu in range(algorithm.gpus):
            for place, promised in PROMISES[algorithm.collective](algorithm, gpu).items():
                if self._held.get((gpu, "o", place)) != promised:
                    what = f"chunk {place} of the output of gpu {gpu} is not what {algorithm.collective} promises"
                    raise WorkloadFileError(algorithm.file, None, what, "the sum of its parts, each once")

    def _wrong(self, step: Step, what: str, expected: str) -> WorkloadFileError:
        return WorkloadFileError(self._algorithm.file, step.line, what, expected)


def _in_ranks(algorithm: Algorithm, operations: Sequence[Operation], order: Sequence[int]) -> GoalSchedule:
    """The operations rank by rank, with each receive at its send."""
    place = {old: new for new, old in enumerate(order)}
    moved = tuple(
        Operation(op.rank, op.kind, op.amount, op.peer, op.tag, needs=tuple(place[each] for each in op.needs))
        for op in (operations[old] for old in order)
    )
    sent = {(op.rank, op.peer, op.tag): new for new, op in enumerate(moved) if op.kind == "send"}
    receives = {new: sent[op.peer, op.rank, op.tag] for new, op in enumerate(moved) if op.kind == "recv"}
    return GoalSchedule(algorithm.file, algorithm.gpus, moved, receives)


def _all(algorithm: Algorithm, chunk: int) -> Chunk:
    return frozenset((gpu, chunk) for gpu in range(algorithm.gpus))


def _allreduce(algorithm: Algorithm, gpu: int) -> dict[int, Chunk]:
    return {chunk: _all(algorithm, chunk) for chunk in range(algorithm.inputs.get(gpu, 0))}


def _allgather(algorithm: Algorithm, gpu: int) -> dict[int, Chunk]:
    each = algorithm.inputs.get(gpu, 0)
    parts = [(other, chunk) for other in range(algorithm.gpus) for chunk in range(each)]
    return {other * each + chunk: frozenset([(other, chunk)]) for other, chunk in parts}


def _reduce_scatter(algorithm: Algorithm, gpu: int) -> dict[int, Chunk]:
    each = algorithm.inputs.get(gpu, 0) // algorithm.gpus
    first = gpu * each if algorithm.in_place else 0
    return {first + chunk: _all(algorithm, gpu * each + chunk) for chunk in range(each)}


def _alltoall(algorithm: Algorithm, gpu: int) -> dict[int, Chunk]:
    each = algorithm.inputs.get(gpu, 0) // algorithm.gpus
    return {
        other * each + chunk: frozenset([(other, gpu * each + chunk)])
        for other in range(algorithm.gpus)
        for chunk in range(each)
    }


PROMISES: Final[Mapping[str, Callable[[Algorithm, int], dict[int, Chunk]]]] = {
    "allreduce": _allreduce,
    "allgather": _allgather,
    "reducescatter": _reduce_scatter,
    "alltoall": _alltoall,
}
"""Collective -> what a GPU's output holds in the end, by chunk."""
