"""The compiled loop over events behind :mod:`testbed.fluid.steady_state`: jobs compute, send, wait and begin again.

Arrays are by job; what happens to one touches only those that it may slow, or shares GPUs with.
Sums are in the order of the jobs: compiled and not compiled, the numbers are the same.
"""

from __future__ import annotations

import numpy as np

from testbed.fluid.compiled import compiled, compiled_in_place
from testbed.fluid.fair_speeds import Links, Room, share_fairly
from testbed.fluid.gpu_turns import Turns, turns_at_start
from testbed.fluid.job_progress import (
    adopt,
    averages,
    bring_due,
    bring_to,
    busy_gpus,
    earliest,
    expect,
    first_done,
    remember_sums,
    that_change,
    wish,
)
from testbed.fluid.level_speeds import end_of_level, those_below, who_feel
from testbed.fluid.maxmin import Flags, Floats, Integers
from testbed.fluid.shared_links import Rows, Users, that_can_be_full, users_of, whom_they_slow
from workloads.periodic_job import SLACK_S


@compiled
def run(
    left: Floats,
    times: Floats,
    starts: Integers,
    links: Integers,
    shares: Floats,
    count: int,
    levels: Integers,
    weights: Floats,
    pack: Integers,
    first_s: float,
    limit_s: float,
    doublings: int,
    tolerance: float,  # a stretch twice as long must move the busy GPUs by less than this share of all
    quotas: Floats,
    rates: Floats,
) -> float:
    """Write iterations per second into ``rates`` [jobs]; return the seconds computed.

    ``left`` [3, jobs]: what is left of each iteration, at the beginning and, afterwards, at the end. ``times``
    [jobs, 4]: compute (with pause), lead (with pause), communication, offset. ``pack`` [jobs]: which jobs share GPUs.
    ``quotas`` [jobs], none if empty: it ends when the first job has computed so many iterations.
    """
    jobs = len(levels)
    users = users_of(starts, links, shares, count)
    own = that_can_be_full(starts, links, shares, users, levels)
    slows = whom_they_slow(own[0], own[1], users, levels)
    room = np.ones(count), np.zeros(count), np.arange(jobs), np.zeros(jobs, np.bool_)
    speeds, times_s = (np.zeros(jobs), np.zeros(jobs)), (np.zeros(jobs), np.zeros(jobs))
    flags = np.zeros(jobs, np.bool_), np.zeros(jobs, np.bool_), np.zeros(jobs, np.bool_)
    lists = np.arange(jobs), np.arange(jobs), np.arange(jobs)
    sums, turns = (np.zeros((2, jobs)), np.zeros((2, jobs))), turns_at_start(left, times, pack)
    stretch = first_s, limit_s, doublings, tolerance
    network = own, users, slows, levels
    return go_on(
        left, times, weights, network, turns, stretch, quotas, rates, speeds, times_s, flags, lists, sums, room
    )


@compiled_in_place
def go_on(
    left: Floats,
    times: Floats,
    weights: Floats,
    network: tuple[Links, Users, Rows, Integers],
    turns: Turns,
    stretch: tuple[float, float, int, float],
    quotas: Floats,
    rates: Floats,
    speeds: tuple[Floats, Floats],
    times_s: tuple[Floats, Floats],
    flags: tuple[Flags, Flags, Flags],
    lists: tuple[Integers, Integers, Integers],
    sums: tuple[Floats, Floats],
    room: Room,
) -> float:
    """Carry out :func:`run` with the arrays that it made: all of zeros but ``lists``, which have all jobs."""
    first_s, limit_s, doublings, tolerance = stretch
    own, users, slows, levels = network
    speed, fresh = speeds
    since, due = times_s
    sending, last, inside = flags
    everybody, ready, anew = lists
    done, half = sums
    jobs, waits, now, end, before = len(levels), turns[1], 0.0, min(first_s, limit_s), -1.0
    while True:
        while now < end - SLACK_S:
            some = bring_due(due, now, ready, left, times, speed, turns, since, done)
            changed = wish(ready, some, left, waits, sending, last, speed, fresh)
            expect(ready, some, now, left, waits, speed, due)
            if changed:
                count, first = who_feel(ready, some, sending, last, slows, levels, inside, anew), 0
                while first < count:
                    behind = end_of_level(anew, first, count, levels, inside)
                    some = share_fairly(anew, first, behind, sending, own, users, levels, fresh, room, ready)
                    some = that_change(ready, some, speed, fresh)
                    bring_to(now, ready, some, left, times, speed, turns, since, done)
                    adopt(ready, some, fresh, speed)
                    expect(ready, some, now, left, waits, speed, due)
                    count, first = those_below(ready, some, anew, count, sending, slows, levels, inside), behind
            now = earliest(due, end)
            quota_s = first_done(quotas, left, times, waits, since, done)
            if quota_s <= now:
                now = first_s = end = quota_s
        bring_to(now, everybody, jobs, left, times, speed, turns, since, done)
        averages(done, half, now, end == first_s or end >= limit_s, rates)
        busy, whole = busy_gpus(weights, rates, times)
        if doublings == 0 or abs(busy - before) < tolerance * whole or end >= limit_s:
            return now
        remember_sums(done, half)
        before, end, doublings = busy, min(2.0 * end, limit_s), doublings - 1
