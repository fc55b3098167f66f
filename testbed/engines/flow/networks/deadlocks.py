"""What is wrong with a network whose packets wait for ever, in words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from testbed.engines.flow.networks.records import columns
from testbed.rdma.state import NONE, State

_MOST_NAMED: Final = 8


def stuck(state: State, names: Sequence[str]) -> str:
    """One line that names the links whose packets wait because they are paused, in a circle if there is one."""
    waiting = [
        (int(link), int(level))
        for link, level in np.argwhere(np.asarray(columns(state.queues)["paused"]))
        if state.links[link].waiting & (1 << level)
    ]
    circle = _circle(state, waiting)
    if circle:
        named = ", ".join(names[link] for link, _ in circle[:_MOST_NAMED])
        return f"deadlock: at level {circle[0][1]} these links pause each other in a circle: {named}"
    return f"packets wait for ever: {len(waiting)} queues are paused"


def _circle(state: State, waiting: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Queues each of which waits for the next, and the last one for the first; empty if there is no circle."""
    held = set(waiting)
    for start in waiting:
        seen: dict[tuple[int, int], int] = {}
        queue: tuple[int, int] | None = start
        while queue is not None and queue not in seen:
            seen[queue] = len(seen)
            queue = _waits_for(state, queue, held)
        if queue is not None:
            return list(seen)[seen[queue] :]
    return []


def _waits_for(state: State, queue: tuple[int, int], held: set[tuple[int, int]]) -> tuple[int, int] | None:
    """A paused queue of the switch at the end of the link of ``queue`` that holds packets that came over it."""
    link, level = queue
    for other, its_level in sorted(held):
        if its_level != level or state.links[other].source != state.links[link].target:
            continue
        packet = int(state.queues[other, level].first)
        while packet != NONE:
            hop = int(state.packets[packet].hop)
            if hop > 0 and state.paths[state.packets[packet].path, hop - 1] == link:
                return other, level
            packet = int(state.packets[packet].behind)
    return None
