"""Levels for an order that changes while messages are in flight: a job that need not rise keeps its level.

Only the order matters under strict priority. A message that rises leaves what it has in flight
behind at its old level, waiting for jobs that it now precedes; one that falls leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise


def stable_levels(
    order: Sequence[str], in_force: Mapping[str, int], wanted: Mapping[str, int], levels: int
) -> dict[str, int]:
    """Return name -> level for ``order`` (first is served first).

    If there is a level for every name, levels rise along the order, and a name in ``in_force`` keeps
    its level or falls, unless no levels would remain for the names behind it. If there are
    more names than ``levels``, the levels are those ``wanted``.
    """
    if len(order) > levels:
        return dict(wanted)
    found: dict[str, int] = {}
    free = 0
    for rank, name in enumerate(order):
        last = levels - (len(order) - rank)
        found[name] = min(last, max(free, in_force.get(name, free)))
        free = found[name] + 1
    return found


def kept_levels(wanted: Mapping[str, int], in_force: Mapping[str, int]) -> dict[str, int]:
    """Return the levels ``in_force`` of the names of ``wanted`` if they order them alike, else ``wanted``.

    After a departure the levels of those that stay order them as before: nobody has to move.
    """
    if any(name not in in_force for name in wanted):
        return dict(wanted)
    pairs = sorted({(level, in_force[name]) for name, level in wanted.items()})
    rising = all(one[0] < other[0] and one[1] < other[1] for one, other in pairwise(pairs))
    return {name: in_force[name] for name in wanted} if rising else dict(wanted)
