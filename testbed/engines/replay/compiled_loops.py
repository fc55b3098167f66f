"""Loops over flows and links, compiled: replays call them tens of thousands of times."""

from __future__ import annotations

from typing import Final

import numpy as np

from controller.schedulers.crux.path_loops import Numbers, PathLoops, least_loaded, most_loaded_s
from testbed.fluid.compiled import compiled
from testbed.fluid.maxmin import Floats, Integers

_LOOPS: Final = PathLoops(compiled(least_loaded), compiled(most_loaded_s))
LOOPS: Final = None if _LOOPS.least_loaded is least_loaded else _LOOPS
"""None without a compiler: then numpy is faster."""


@compiled
def seconds_by_link(
    links: Numbers, sizes: Floats, pcie: Numbers, moved: Floats, capacity: Floats, absent: int, room: Floats
) -> tuple[Integers, Floats]:
    """Return the links that bytes go over, by number, and the seconds that each needs for them.

    ``sizes`` [flow] are the bytes over ``links`` [hop, flow], ``moved`` those over ``pcie``. Links from ``absent`` on
    are none. ``room`` [link] holds zeros, before and after.
    """
    found, count = np.empty(links.size + len(pcie), np.int64), 0
    for flow in range(len(sizes)):
        for hop in range(len(links)):
            link = links[hop, flow]
            if sizes[flow] > 0.0 and link < absent:
                if room[link] == 0.0:
                    found[count] = link
                    count += 1
                room[link] += sizes[flow]
    for place in range(len(pcie)):
        if moved[place] > 0.0:
            link = pcie[place]
            if room[link] == 0.0:
                found[count] = link
                count += 1
            room[link] += moved[place]
    used = np.sort(found[:count])
    seconds = np.empty(count)
    for place in range(count):
        seconds[place] = 8 * room[used[place]] / capacity[used[place]]
        room[used[place]] = 0.0
    return used, seconds
