"""How far jobs are in their iterations, from event to event; compiled.

A job computes (the lead is the part of it before it sends), sends, waits for GPUs that it shares, and begins again.
Arrays are by job.
"""

from __future__ import annotations

import numpy as np

from testbed.fluid.compiled import compiled_in_place
from testbed.fluid.gpu_turns import Turns, grant
from testbed.fluid.maxmin import Flags, Floats, Integers
from workloads.periodic_job import SLACK_S

Progress = tuple[Floats, Floats, Floats, Floats, Floats]
"""How far jobs are.

What is left [3, jobs] of compute, lead and communication, in seconds; their whole ``times`` [jobs, 4], as
:func:`.steady_state_kernel.run` has them; the speed [jobs], 0 to 1, at which they send; up to when [jobs] this holds;
and the sums [2, jobs] of the iterations of compute that they have done, and of the integral of time over them.
"""


@compiled_in_place
def those_due(due: Floats, now: float, out: Integers) -> int:
    """Write into ``out`` the jobs to which something happens now; return how many."""
    count = 0
    for job in range(len(due)):
        if due[job] <= now + SLACK_S:
            out[count] = job
            count += 1
    return count


@compiled_in_place
def expect(who: Integers, some: int, now: float, progress: Progress, waits: Flags, due: Floats) -> None:
    """Write into ``due`` [jobs] when the next part (compute, lead, communication) of each of ``who`` ends, if any."""
    left, _, speed, _, _ = progress
    for place in range(some):
        job = who[place]
        step = np.inf
        if left[0, job] > 0.0 and not waits[job]:
            step = left[0, job]
        if left[1, job] > 0.0 and not waits[job]:
            step = min(step, left[1, job])
        if speed[job] > 0.0:
            step = min(step, left[2, job] / speed[job])
        due[job] = now + step


@compiled_in_place
def bring_to(now: float, who: Integers, some: int, progress: Progress, turns: Turns) -> None:
    """Let time pass for ``who`` to ``now``, at most their next event; what has ended restarts.

    A job that has computed releases shared GPUs, and asks for them again for the next iteration.
    """
    left, times, speed, since, sums = progress
    pack, waits, asked, holder = turns
    for place in range(some):
        job = who[place]
        step = now - since[job]
        if left[0, job] > 0.0 and not waits[job]:
            part = step / times[job, 0]
            sums[0, job] += part
            sums[1, job] += part * (since[job] + 0.5 * step)
            for row in range(2):
                left[row, job] -= step
                if left[row, job] <= SLACK_S:
                    left[row, job] = 0.0
            if pack[job] >= 0 and left[0, job] <= 0.0:
                holder[pack[job]] = -1
        if speed[job] > 0.0:
            left[2, job] -= step * speed[job]
            if left[2, job] <= SLACK_S:
                left[2, job] = 0.0
        if left[0, job] <= 0.0 and left[2, job] <= 0.0:
            for row in range(3):
                left[row, job] = times[job, row]
            if pack[job] >= 0:
                waits[job] = True
                asked[job] = now
        since[job] = now


@compiled_in_place
def bring_due(due: Floats, now: float, out: Integers, progress: Progress, turns: Turns) -> int:
    """Bring those to which something happens to ``now``; write them, and who gets shared GPUs, into ``out``; count."""
    some = those_due(due, now, out)
    bring_to(now, out, some, progress, turns)
    return grant(now, turns, progress[3], out, some)


@compiled_in_place
def wish(
    who: Integers, some: int, progress: Progress, waits: Flags, sending: Flags, last: Flags, fresh: Floats
) -> bool:
    """Write into ``sending`` whether each of ``who`` wants its links, and stop those that do not; return any change."""
    left, _, speed, _, _ = progress
    changed = False
    for place in range(some):
        job = who[place]
        sending[job] = left[1, job] <= 0.0 < left[2, job] and not waits[job]
        if not sending[job]:
            speed[job] = fresh[job] = 0.0
        changed = changed or sending[job] != last[job]
    return changed


@compiled_in_place
def first_done(quotas: Floats, progress: Progress, waits: Flags) -> float:
    """Return when the first job will have computed its quota of iterations, [jobs], if nothing else happens before."""
    left, times, _, since, sums = progress
    first = np.inf
    for job in range(len(quotas)):
        if left[0, job] > 0.0 and not waits[job] and quotas[job] < np.inf:
            first = min(first, since[job] + max(0.0, quotas[job] - sums[0, job]) * times[job, 0])
    return max(first, SLACK_S)


@compiled_in_place
def earliest(due: Floats, end: float) -> float:
    """Return the first time in ``due``, at most ``end``."""
    for time_s in due:
        end = min(end, time_s)
    return end


@compiled_in_place
def that_change(who: Integers, some: int, speed: Floats, fresh: Floats) -> int:
    """Bring to the front of ``who`` those that get another speed; return how many."""
    count = 0
    for place in range(some):
        job = who[place]
        if fresh[job] != speed[job]:
            who[count] = job
            count += 1
    return count


@compiled_in_place
def adopt(who: Integers, some: int, fresh: Floats, speed: Floats) -> None:
    """Let the speeds of ``who`` be the ``fresh`` ones."""
    for place in range(some):
        job = who[place]
        speed[job] = fresh[job]


@compiled_in_place
def averages(sums: Floats, half: Floats, now: float, plain: bool, rates: Floats) -> None:
    """Write into ``rates`` averages over 0 .. ``now``; unless ``plain``, weights rise to the middle and then fall."""
    for job in range(len(rates)):
        if plain:
            rates[job] = sums[0, job] / now
        else:
            falling = now * (sums[0, job] - half[0, job]) - (sums[1, job] - half[1, job])
            rates[job] = 4.0 * (half[1, job] + falling) / now**2


@compiled_in_place
def busy_gpus(weights: Floats, rates: Floats, times: Floats) -> tuple[float, float]:
    """Return how many GPUs compute on average, of jobs with ``weights`` GPUs at ``rates``, and how many there are."""
    busy = whole = 0.0
    for job in range(len(weights)):
        busy += weights[job] * rates[job] * times[job, 0]
        whole += weights[job]
    return busy, whole


@compiled_in_place
def remember_sums(sums: Floats, half: Floats) -> None:
    """Let ``half`` be as ``sums``."""
    for row in range(2):
        for job in range(sums.shape[1]):
            half[row, job] = sums[row, job]
