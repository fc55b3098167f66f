"""From the dependencies of operators to the phases of an iteration, and what that costs.

A graph has operators that compute and operators that communicate; each waits for others. A job's iteration is a
sequence of phases: compute, and a collective that may start when all but the last part of the compute is done. This
module finds the phases that keep as many dependencies as such a sequence can, and measures how much longer or shorter
the sequence takes than the graph itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush


@dataclass(frozen=True, slots=True)
class Operator:
    """A node of the graph."""

    id: int
    seconds: float
    """Of compute, or of communication alone on the fabric."""
    communicates: bool = False
    after: tuple[int, ...] = ()
    """Ids of those that it waits for."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Compute and the communication that goes with it: the operator ``communication`` may start after ``before_s``."""

    before_s: float
    """Seconds of compute that come first."""
    beside_s: float
    """Seconds of compute that may go on beside the communication."""
    communication: int | None
    """Id of the operator, None for compute alone."""
    background: bool = False
    """Whether nothing but the end of the iteration waits for the communication."""


def ordered(operators: Sequence[Operator]) -> tuple[list[Operator], int]:
    """Return ``operators`` so that each comes after those it waits for, otherwise as given, and what that leaves out.

    Dependencies on what is not among them do not count. Traces of real programs have circles: there the operator that
    is given first goes first, without the dependencies that close the circle, whose number is returned.
    """
    place = {operator.id: number for number, operator in enumerate(operators)}
    needs = [{place[each] for each in operator.after if each in place} for operator in operators]
    then: list[list[int]] = [[] for _ in operators]
    for number, before in enumerate(needs):
        for each in before:
            then[each].append(number)
    ready = [number for number, before in enumerate(needs) if not before]
    heapify(ready)
    found: list[Operator] = []
    placed = [False] * len(operators)
    dropped = first = 0
    while len(found) < len(operators):
        if not ready:
            while placed[first]:
                first += 1
            dropped += len(needs[first])
            needs[first].clear()
            heappush(ready, first)
        number = heappop(ready)
        if placed[number]:
            continue
        placed[number] = True
        found.append(operators[number])
        for following in then[number]:
            if number in needs[following]:
                needs[following].discard(number)
                if not needs[following]:
                    heappush(ready, following)
    return _without_circles(found), dropped


def _without_circles(operators: Sequence[Operator]) -> list[Operator]:
    """The operators with those dependencies only that come before them."""
    seen: set[int] = set()
    found: list[Operator] = []
    for operator in operators:
        found.append(replace(operator, after=tuple(each for each in operator.after if each in seen)))
        seen.add(operator.id)
    return found


def length_s(operators: Sequence[Operator]) -> float:
    """Return the seconds that the graph takes: one operator computes at a time, in order; all others run when they may.

    ``operators`` are :func:`ordered`.
    """
    ends: dict[int, float] = {}
    computes_until = 0.0
    for operator in operators:
        begins = max((ends[each] for each in operator.after if each in ends), default=0.0)
        if not operator.communicates and operator.seconds > 0:
            begins = max(begins, computes_until)
            computes_until = begins + operator.seconds
        ends[operator.id] = begins + operator.seconds
    return max(ends.values(), default=0.0)


def stretches(operators: Sequence[Operator]) -> tuple[Stretch, ...]:
    """Return the phases of the graph; ``operators`` are :func:`ordered`.

    Communication comes in the order of the graph. What an operator needs is computed before it; what the next one needs
    and does not wait for this one is computed beside it. Where no compute before the next communication waits for this
    one, nor does the next one itself, it goes on in the background.
    """
    number = {operator.id: place for place, operator in enumerate(op for op in operators if op.communicates)}
    senders = list(number)
    waits_for = _last_communications(operators, number)
    first_use = _first_uses(operators, number)
    computed = [0.0] * (len(senders) + 1)
    beside = [0.0] * (len(senders) + 1)
    for operator in operators:
        if operator.communicates:
            continue
        stage = first_use[operator.id]
        free = stage > 0 and not waits_for[operator.id] >> (stage - 1) & 1
        (beside if free else computed)[stage] += operator.seconds
    return tuple(_sequence(senders, computed, beside, _waited_for(operators, number, waits_for)))


def _sequence(
    senders: Sequence[int], computed: Sequence[float], beside: Sequence[float], waited: Sequence[int]
) -> Iterator[Stretch]:
    """Stage k of compute comes before communication k; the part of it that is free runs beside communication k - 1."""
    for place, sender in enumerate(senders):
        background = place + 1 < len(senders) and waited[place] > place + 1
        yield Stretch(computed[place], beside[place + 1], sender, background)
    if computed[-1] > 0 or not senders:
        yield Stretch(computed[-1] + (0.0 if senders else beside[-1]), 0.0, None)


def _last_communications(operators: Sequence[Operator], number: Mapping[int, int]) -> dict[int, int]:
    """Operator -> the communications that it waits for, as bits."""
    found: dict[int, int] = {}
    for operator in operators:
        bits = 0
        for each in operator.after:
            if each in found:
                bits |= found[each] | (1 << number[each] if each in number else 0)
        found[operator.id] = bits
    return found


def _first_uses(operators: Sequence[Operator], number: Mapping[int, int]) -> dict[int, int]:
    """Operator -> the place of the first communication that waits for it; their count for those that none waits for."""
    found = {operator.id: len(number) for operator in operators}
    for operator in reversed(operators):
        needed = min(found[operator.id], number.get(operator.id, len(number)))
        for each in operator.after:
            if each in found:
                found[each] = min(found[each], needed)
    return found


def _waited_for(operators: Sequence[Operator], number: Mapping[int, int], waits_for: Mapping[int, int]) -> list[int]:
    """Communication -> the place of the first later one that waits for it, or for compute that does; else their count.

    Compute that comes before communication k counts as k.
    """
    count = len(number)
    found = [count + 1] * count
    first_use = _first_uses(operators, number)
    for operator in operators:
        stage = number.get(operator.id, first_use[operator.id])
        if not operator.communicates and operator.seconds == 0:
            continue
        bits = waits_for[operator.id]
        while bits:
            low = bits & -bits
            place = low.bit_length() - 1
            found[place] = min(found[place], max(stage, place + 1))
            bits ^= low
    return found
