"""Rates of fluids under strict priority, max-min fair inside a level; compiled.

A job is one fluid. Its speed is its progress relative to the job alone on its links: at speed 1 its
most loaded link is full, at speed y each link carries y times ``shares`` of its capacity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testbed.fluid.compiled import compiled

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_FULL = 1e-12


@compiled
def rise_together(growing: Flags, shares: Floats, free: Floats, out: Floats) -> int:
    """Raise the speeds of the ``growing`` jobs until a link of theirs is full; return how many stop there."""
    jobs, links = shares.shape
    rise = 1.0
    for job in range(jobs):
        if growing[job]:
            rise = min(rise, 1.0 - out[job])
    for link in range(links):
        wanted = 0.0
        for job in range(jobs):
            if growing[job]:
                wanted += shares[job, link]
        if wanted > 0.0:
            rise = min(rise, free[link] / wanted)
    for job in range(jobs):
        if growing[job]:
            out[job] += rise
            for link in range(links):
                free[link] -= rise * shares[job, link]
    stopped = 0
    for job in range(jobs):
        if growing[job]:
            stops = out[job] >= 1.0 - _FULL
            for link in range(links):
                if shares[job, link] > 0.0 and free[link] <= _FULL:
                    stops = True
            if stops:
                growing[job] = False
                stopped += 1
    return stopped


@compiled
def speeds(sending: int, shares: Floats, levels: Integers, out: Floats) -> None:
    """Write into ``out`` [jobs] the speed, 0 .. 1, of the jobs whose bit is set in ``sending``; 0 for the others.

    ``shares`` [jobs, links]: share of each link's capacity that a job takes at speed 1. ``levels``
    [jobs]: 0 .. jobs - 1 or higher, smallest first; a level gets what the levels above leave. Inside
    a level all speeds rise together, and a job stops where a link of its own is full.
    """
    jobs, links = shares.shape
    free = np.ones(links)
    growing = np.zeros(jobs, np.bool_)
    waiting = sending
    for job in range(jobs):
        out[job] = 0.0
    while waiting:
        level = 2**62
        for job in range(jobs):
            if (waiting >> job) & 1 and levels[job] < level:
                level = levels[job]
        left = 0
        for job in range(jobs):
            growing[job] = (waiting >> job) & 1 and levels[job] == level
            if growing[job]:
                left += 1
                waiting &= ~(1 << job)
        while left:
            left -= rise_together(growing, shares, free, out)
