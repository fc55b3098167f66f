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
    Progress,
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
    speed, since, fresh, due = np.zeros(jobs), np.zeros(jobs), np.zeros(jobs), np.zeros(jobs)
    flags = np.zeros(jobs, np.bool_), np.zeros(jobs, np.bool_), np.zeros(jobs, np.bool_)
    lists = np.arange(jobs), np.arange(jobs), np.arange(jobs)
    progress, half = (left, times, speed, since, np.zeros((2, jobs))), np.zeros((2, jobs))
    turns = turns_at_start(left, times, pack)
    network, stretch = (own, users, slows, levels), (first_s, limit_s, doublings, tolerance)
    return go_on(progress, turns, network, weights, stretch, quotas, rates, fresh, due, half, flags, lists, room)


@compiled_in_place
def go_on(
    progress: Progress,
    turns: Turns,
    network: tuple[Links, Users, Rows, Integers],
    weights: Floats,
    stretch: tuple[float, float, int, float],
    quotas: Floats,
    rates: Floats,
    fresh: Floats,
    due: Floats,
    half: Floats,
    flags: tuple[Flags, Flags, Flags],
    lists: tuple[Integers, Integers, Integers],
    room: Room,
) -> float:
    """Carry out :func:`run` with the arrays that it made: all of zeros but ``lists``, which have all jobs.

    ``fresh`` [jobs]: speeds before they are adopted; ``due`` [jobs]: when something happens next; ``half``: the sums at
    the end of the stretch before.
    """
    first_s, limit_s, doublings, tolerance = stretch
    own, users, slows, levels = network
    sending, last, inside = flags
    everybody, ready, anew = lists
    times, speed, sums, waits = progress[1], progress[2], progress[4], turns[1]
    now, end, before = 0.0, min(first_s, limit_s), -1.0
    while True:
        while now < end - SLACK_S:
            some = bring_due(due, now, ready, progress, turns)
            changed = wish(ready, some, progress, waits, sending, last, fresh)
            expect(ready, some, now, progress, waits, due)
            if changed:
                count, first = who_feel(ready, some, sending, last, slows, levels, inside, anew), 0
                while first < count:
                    behind = end_of_level(anew, first, count, levels, inside)
                    some = share_fairly(anew, first, behind, sending, own, users, levels, fresh, room, ready)
                    some = that_change(ready, some, speed, fresh)
                    bring_to(now, ready, some, progress, turns)
                    adopt(ready, some, fresh, speed)
                    expect(ready, some, now, progress, waits, due)
                    count, first = those_below(ready, some, anew, count, sending, slows, levels, inside), behind
            now = earliest(due, end)
            done = first_done(quotas, progress, waits)
            if done <= now:
                now = first_s = end = done
        bring_to(now, everybody, len(everybody), progress, turns)
        averages(sums, half, now, end == first_s or end >= limit_s, rates)
        busy, whole = busy_gpus(weights, rates, times)
        if doublings == 0 or abs(busy - before) < tolerance * whole or end >= limit_s:
            return now
        remember_sums(sums, half)
        before, end, doublings = busy, min(2.0 * end, limit_s), doublings - 1
