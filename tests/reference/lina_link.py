"""One link, the operations of one job: when each ends under fair sharing, in one queue, and as Lina's micro-ops.

Lina (ATC 2023) cuts allreduces and all-to-alls into micro-ops of the same size, and starts a micro-op
of an allreduce only when none of an all-to-all waits. A micro-op under way is not interrupted. Numbers
may be floats or fractions; with fractions the ends are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

Number = float | Fraction

MICRO_OP_BYTES: Final = 30_000_000
"""The size that Lina uses."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A collective's bytes on the link, and when they are ready to be sent (seconds)."""

    name: str
    kind: Literal["allreduce", "all-to-all"]
    bytes: Number
    ready_s: Number = 0


def ends_by_fair_sharing(operations: Sequence[Operation], rate: Number) -> dict[str, Number]:
    """Return operation -> end in seconds on a link of ``rate`` bytes per second that all share equally."""
    left: dict[str, Number] = {operation.name: operation.bytes for operation in operations}
    ready: dict[str, Number] = {operation.name: operation.ready_s for operation in operations}
    ends: dict[str, Number] = {}
    now: Number = 0
    while left:
        now = max(now, min(ready[name] for name in left))
        active = [name for name in left if ready[name] <= now]
        share = rate / len(active)
        first_end = now + min(left[name] for name in active) / share  # unless another gets ready before
        until = min([first_end, *(ready[name] for name in left if ready[name] > now)])
        for name in active:
            left[name] -= share * (until - now)
        least = min(left[name] for name in active)  # what floats leave of 0, where one has ended
        for name in active:
            if until == first_end and left[name] <= least:
                ends[name] = until
                del left[name]
        now = until
    return ends


def ends_in_one_queue(operations: Sequence[Operation], rate: Number) -> dict[str, Number]:
    """Return operation -> end in seconds where the link sends one whole operation after the other, first come first."""
    return ends_of_micro_ops(operations, rate, micro_op=None, all_to_all_first=False)


def ends_of_micro_ops(
    operations: Sequence[Operation],
    rate: Number,
    *,
    micro_op: Number | None = MICRO_OP_BYTES,
    all_to_all_first: bool = True,
) -> dict[str, Number]:
    """Return operation -> end in seconds where the link sends one micro-op after the other.

    Micro-ops have ``micro_op`` bytes, the last of an operation what is left; None: operations are not
    cut. Among those that wait, all-to-alls go first, then the operation that was ready first. ``rate``
    is in bytes per second. Raises ``ValueError`` for a micro-op without bytes.
    """
    if micro_op is not None and micro_op <= 0:
        raise ValueError(f"a micro-op must have more than 0 bytes, not {micro_op}")
    left: dict[str, Number] = {operation.name: operation.bytes for operation in operations}
    ends: dict[str, Number] = {}
    now: Number = 0
    while len(ends) < len(operations):
        waiting = [operation for operation in operations if operation.name not in ends]
        now = max(now, min(operation.ready_s for operation in waiting))
        ready = [operation for operation in waiting if operation.ready_s <= now]
        chosen = min(ready, key=lambda one: (all_to_all_first and one.kind != "all-to-all", one.ready_s))
        size = left[chosen.name] if micro_op is None else min(micro_op, left[chosen.name])
        now += size / rate
        left[chosen.name] -= size
        if left[chosen.name] <= 0:
            ends[chosen.name] = now
    return ends
