"""How many short iterations are computed as one beside much longer ones; compiled."""

from __future__ import annotations

from typing import Final

import numpy as np

from testbed.fluid.compiled import compiled
from testbed.fluid.maxmin import Flags, Floats
from testbed.fluid.shared_links import Rows

FINEST: Final = 20
"""Iterations that are computed one by one while the slowest job makes one; more only as :func:`bundle_sizes`."""
MUCH: Final = 8.0
"""Iterations that are so many times as long are no longer like each other."""


@compiled
def bundle_sizes(periods: Floats, one_by_one: Flags, near: Rows) -> Floats:
    """Return how many iterations of each job are taken as one, so many times as long; mostly 1.

    ``periods`` [jobs]: seconds of an iteration alone. ``near``: who shares a link. What lies between iterations of
    milliseconds and of seconds does not depend on how short the short ones are, only on their shares of compute and
    communication. Jobs that share links and have like iterations are taken alike, so that time shifts between them stay
    what they are. Those that take turns on GPUs, ``one_by_one``, are taken so.
    """
    jobs, longest = len(periods), periods.max()
    rows, others = near
    most = np.zeros(jobs)
    for job in range(jobs):
        if not one_by_one[job]:
            most[job] = longest / FINEST / periods[job]
    again = most.max() >= 2.0
    if not again:
        return np.ones(jobs)
    while again:  # over all whom like iterations join, directly or through others
        again, least = False, most.copy()
        for job in range(jobs):
            for place in range(rows[job], rows[job + 1]):
                ratio = periods[job] / periods[others[place]]
                if ratio < MUCH and ratio * MUCH > 1.0:
                    least[job] = min(least[job], most[others[place]])
            again = again or least[job] != most[job]
        most = least
    return np.maximum(1.0, np.floor(most))
