"""Decode instances: continuous batching, from when caches arrived to when tokens came. Pure.

As Orca (Yu et al., OSDI'22, section 3): requests join and leave the batch between steps; every step makes a token for
each of them. A request joins, in the order of arrival, if the batch and the whole of its tokens have room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from workloads.serving.served import DecodeModel


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request whose first token came at ``first_token_s`` and whose cache is there at ``ready_s``; output >= 1."""

    first_token_s: float
    ready_s: float
    prompt: int
    output: int


@dataclass(slots=True)
class Decoded:
    """``last_token_s`` by request, infinite for one that does not fit into the instance; ``busy`` spans of that.

    ``gaps``: (seconds between two tokens, how often, when the later one came).
    """

    last_token_s: list[float]
    gaps: list[tuple[float, int, float]] = field(default_factory=list)
    busy: list[tuple[float, float]] = field(default_factory=list)


@dataclass(slots=True)
class _Active:
    place: int
    left: int
    tokens: int
    since: float


def decode(requests: Sequence[Waiting], model: DecodeModel) -> Decoded:
    """Return what becomes of ``requests`` at one instance, whatever their order."""
    found = Decoded([each.first_token_s if each.output == 1 else float("inf") for each in requests])
    order = sorted(range(len(requests)), key=lambda place: (requests[place].ready_s, place))
    line = deque(place for place in order if requests[place].output > 1 and _fits(requests[place], model))
    active: list[_Active] = []
    reserved, now = 0, 0.0
    while line or active:
        if not active:
            now = max(now, requests[line[0]].ready_s)
        while line and requests[line[0]].ready_s <= now and len(active) < model.batch:
            each = requests[line[0]]
            if reserved + each.prompt + each.output > model.most_tokens:
                break
            reserved += each.prompt + each.output
            active.append(_Active(line.popleft(), each.output - 1, each.prompt + 1, each.first_token_s))
        begin, now = now, now + model.step_s(len(active), sum(each.tokens for each in active))
        _note(found, begin, now, active)
        for one in active:
            one.left, one.tokens, one.since = one.left - 1, one.tokens + 1, now
            if one.left == 0:
                found.last_token_s[one.place] = now
                reserved -= requests[one.place].prompt + requests[one.place].output
        active = [one for one in active if one.left > 0]
    return found


def _fits(request: Waiting, model: DecodeModel) -> bool:
    return request.prompt + request.output <= model.most_tokens


def _note(found: Decoded, begin: float, end: float, active: Sequence[_Active]) -> None:
    """A step: a token for each of ``active``."""
    if found.busy and found.busy[-1][1] == begin:
        found.busy[-1] = found.busy[-1][0], end
    else:
        found.busy.append((begin, end))
    steady = sum(one.since == begin for one in active)
    if steady:
        found.gaps.append((end - begin, steady, end))
    found.gaps.extend((end - one.since, 1, end) for one in active if one.since != begin)
