"""Jobs that share GPUs compute one at a time, first come first served; compiled."""

from __future__ import annotations

import numpy as np

from testbed.fluid.compiled import compiled, compiled_in_place
from testbed.fluid.maxmin import Flags, Floats, Integers

Turns = tuple[Integers, Flags, Floats, Integers]
"""What :func:`turns_at_start` returns."""


@compiled
def turns_at_start(left: Floats, times: Floats, pack: Integers) -> Turns:
    """Return by job its pack, whether it waits for its GPUs and since when; by pack which job has them: none yet.

    The job furthest into its iteration asked first.
    """
    jobs = len(pack)
    waits, asked = np.zeros(jobs, np.bool_), np.zeros(jobs)
    for job in range(jobs):
        if pack[job] >= 0 and left[0, job] > 0.0:
            waits[job] = True
            asked[job] = left[0, job] / times[job, 0] - 1.0
    return pack, waits, asked, np.full(pack.max() + 1, -1)


@compiled_in_place
def grant(now: float, turns: Turns, since: Floats, ready: Integers, count: int) -> int:
    """Give idle GPUs to the job that asked first, and add those jobs to the ``count`` that are ready."""
    pack, waits, asked, holder = turns
    for place in range(len(holder)):
        if holder[place] < 0:
            first = -1
            for job in range(len(pack)):
                if pack[job] == place and waits[job] and (first < 0 or asked[job] < asked[first]):
                    first = job
            if first >= 0:
                holder[place] = first
                waits[first] = False
                since[first] = now
                known = False
                for due in range(count):
                    known = known or ready[due] == first
                if not known:
                    ready[count] = first
                    count += 1
    return count
