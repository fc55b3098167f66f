"""Loops over flows and links that take Python long and a compiler no time: an engine that has one may compile them.

To the last bit what :mod:`.path_selection` and :mod:`.path_index` find with numpy, if nobody compiles anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.intp]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PathLoops:
    """The functions of this module, compiled."""

    least_loaded: Callable[[Numbers, Flags, Floats, Floats, Floats, Numbers, float], None]
    most_loaded_s: Callable[[Numbers, Numbers, Floats, Floats, Floats], float]


def least_loaded(
    table: Numbers, unlike: Flags, load: Floats, rates: Floats, capacity: Floats, choice: Numbers, slack: float
) -> None:
    """Write into ``choice`` [flow] the candidate with the smallest (maximum, sum) of ``load``; add the flow to it.

    One flow after the other. ``table``: [hop, flow, candidate] -> link. ``rates`` [flow]: bits per second. ``unlike``
    [flow]: whether the flow's own load counts, too. A candidate that is in ``choice`` (-1 for none) stays if its most
    loaded link, with the flow, is loaded at most ``slack`` times as much as the least that any candidate has.
    """
    hops, flows, candidates = table.shape
    for flow in range(flows):
        best, best_sum, least, held = np.inf, np.inf, np.inf, np.inf
        in_force = choice[flow]
        for candidate in range(candidates):
            largest = total = most = 0.0
            for hop in range(hops):
                link = table[hop, flow, candidate]
                found, own = load[link], rates[flow] / capacity[link]
                most = max(most, found + own)
                if unlike[flow]:
                    found += own
                largest = max(largest, found)
                total += found
            least = min(least, most)
            if candidate == in_force:
                held = most
            if largest < best or (largest == best and total < best_sum):
                best, best_sum, choice[flow] = largest, total, candidate
        if in_force >= 0 and held <= slack * least:
            choice[flow] = in_force
        for hop in range(hops):
            link = table[hop, flow, choice[flow]]
            load[link] += rates[flow] / capacity[link]


def most_loaded_s(links: Numbers, flows: Numbers, sizes: Floats, capacity: Floats, room: Floats) -> float:
    """Return the seconds that the most loaded of ``links`` ([hop, flow]) needs for ``sizes`` (bytes) of ``flows``.

    ``room`` [link] holds zeros, before and after.
    """
    hops = len(links)
    for place in range(len(flows)):
        for hop in range(hops):
            room[links[hop, flows[place]]] += sizes[place]
    most = 0.0
    for place in range(len(flows)):
        for hop in range(hops):
            link = links[hop, flows[place]]
            most = max(most, 8 * room[link] / capacity[link])
    for place in range(len(flows)):
        for hop in range(hops):
            room[links[hop, flows[place]]] = 0.0
    return most
