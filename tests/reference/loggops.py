"""A small LogGOPS simulator of GOAL text, written from the paper: a gap per byte, NICs that send in turn.

Hoefler, Schneider, Lumsdaine, "LogGOPSim" (2010). A NIC takes ``G`` seconds per byte to send, first come first served,
and as long to receive; links inside the network are never full.
"""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from dataclasses import dataclass, field

_OPERATION = re.compile(r"(\w+): (calc|send|recv) (\d+)(b (?:to|from) (\d+) tag (\d+))?")


@dataclass
class Operation:
    rank: int
    kind: str
    amount: int
    peer: int = -1
    tag: int = -1
    needs: set[str] = field(default_factory=set)


def parsed(text: str) -> tuple[int, dict[tuple[int, str], Operation]]:
    found: dict[tuple[int, str], Operation] = {}
    ranks, rank = 0, -1
    for line in text.splitlines():
        if line.startswith("num_ranks"):
            ranks = int(line.split()[1])
        elif line.startswith("rank"):
            rank = int(line.split()[1])
        elif match := _OPERATION.match(line):
            label, kind, amount, _, peer, tag = match.groups()
            found[rank, label] = Operation(rank, kind, int(amount), int(peer or -1), int(tag or -1))
        elif "requires" in line:
            label, _, needed = line.split()
            found[rank, label].needs.add(needed)
    return ranks, found


def simulated_s(text: str, gap_s: float) -> float:
    """When the last operation ends."""
    _, operations = parsed(text)
    waiting = {key: len(operation.needs) for key, operation in operations.items()}
    behind: dict[tuple[int, str], list[tuple[int, str]]] = defaultdict(list)
    receives = {(each.rank, each.peer, each.tag): key for key, each in operations.items() if each.kind == "recv"}
    for key, operation in operations.items():
        for needed in operation.needs:
            behind[operation.rank, needed].append(key)
    sends_until: dict[int, float] = defaultdict(float)
    takes_until: dict[int, float] = defaultdict(float)
    agenda: list[tuple[float, int, str, tuple[int, str]]] = []
    order = 0

    def push(when: float, what: str, key: tuple[int, str]) -> None:
        nonlocal order
        order += 1
        heapq.heappush(agenda, (when, order, what, key))

    for key, count in waiting.items():
        if count == 0 and operations[key].kind != "recv":
            push(0.0, "start", key)
    last, done = 0.0, 0
    while agenda:
        now, _, what, key = heapq.heappop(agenda)
        operation = operations[key]
        if what == "start" and operation.kind == "send":
            begin = max(now, sends_until[operation.rank])
            sends_until[operation.rank] = begin + operation.amount * gap_s
            push(begin, "take", key)
            push(sends_until[operation.rank], "end", key)
        elif what == "take":
            takes_until[operation.peer] = max(now, takes_until[operation.peer]) + operation.amount * gap_s
            push(takes_until[operation.peer], "end", receives[operation.peer, operation.rank, operation.tag])
        elif what == "start":
            push(now + operation.amount * 1e-9, "end", key)
        else:
            last, done = max(last, now), done + 1
            for follower in behind[key]:
                waiting[follower] -= 1
                if waiting[follower] == 0:
                    push(now, "start", follower)
    assert done == len(operations), "operations wait for each other"
    return last
