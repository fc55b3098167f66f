"""Why jobs fail, and after how long: the causes that Philly's authors count (Jeon et al., ATC 2019, table 7).

Shares and minutes to failure are from memory of that table, not checked against it. Which causes repeat, and which
show on one GPU, is our reading of its text: what is wrong with a program or its input fails again in the same way,
what is wrong with machines does not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from random import Random
from types import MappingProxyType
from typing import Final

from workloads.traces.job_failures import SHARES, Status

LEAST_S: Final = 5.0
"""No attempt fails sooner: processes have to start."""
_SOONEST: Final = 0.05
"""Of the median: the shortest time to failure."""


@dataclass(frozen=True, slots=True)
class FailureCause:
    """A cause of failed attempts: how many ``trials`` of the published ones it has, and the minutes until it shows.

    ``minutes``: at 50, 90 and 95 % of its failures. ``repeats``: a job fails of it each time. ``on_one_gpu``: it shows
    on one GPU too. ``input``: what the job reads is bad.
    """

    trials: int
    minutes: tuple[float, float, float]
    repeats: bool = True
    on_one_gpu: bool = True
    input: bool = False

    def time_to_failure_s(self, share: float) -> float:
        """Seconds until it shows, at a ``share`` (0 to 1) of its failures: straight lines in log time."""
        half, most, nearly = self.minutes
        points = ((0.0, _SOONEST * half), (0.5, half), (0.9, most), (0.95, nearly), (1.0, nearly))
        for (below, shorter), (above, longer) in pairwise(points):
            if share <= above:
                along = (share - below) / (above - below)
                return max(LEAST_S, 60.0 * shorter * math.pow(max(longer, shorter) / shorter, along))
        return 60.0 * nearly


CAUSES: Final[Mapping[str, FailureCause]] = MappingProxyType(
    {
        "CPU out of memory": FailureCause(12076, (13.45, 17.73, 33.97)),
        "incorrect inputs": FailureCause(9690, (1.87, 404.83, 2095.73), input=True),
        "semantic error": FailureCause(2943, (2.72, 376.00, 1436.88)),
        "core dump": FailureCause(2912, (0.85, 72.75, 431.65)),
        "invalid memory access": FailureCause(2602, (1.03, 403.50, 1357.38)),
        "model checkpoint error": FailureCause(1995, (181.67, 3728.93, 8196.02), repeats=False),
        "CUDA failure": FailureCause(1484, (1.32, 19.87, 82.17)),
        "syntax error": FailureCause(1132, (0.58, 5.02, 12.00)),
        "crash": FailureCause(777, (1.02, 894.33, 1394.07)),
        "MPI error": FailureCause(634, (1.62, 3015.27, 5143.98), on_one_gpu=False),
        "GPU out of memory": FailureCause(487, (18.53, 353.62, 2740.28)),
        "MPI runtime failure": FailureCause(478, (1389.48, 13778.60, 18090.88), repeats=False, on_one_gpu=False),
        "permission error": FailureCause(299, (1.00, 8.15, 15.85)),
        "import error": FailureCause(148, (0.67, 4.58, 10.73)),
        "job preempted": FailureCause(147, (559.08, 2682.85, 5892.23), repeats=False, on_one_gpu=False),
        "CUDA initialisation": FailureCause(141, (1.08, 2.18, 4.63), repeats=False),
        "GPU ECC error": FailureCause(10, (26.82, 671.92, 2035.02), repeats=False),
    }
)
"""Name -> cause; causes of fewer than ten published trials are left out."""

RETRIES: Final = 4
"""Published: a job is unsuccessful after repeated failure, "up to a pre-defined number of retries (e.g., 4)"."""
INTERRUPTED: Final = 0.03
"""Share of attempts of jobs that pass in the end for which a failure of machines is drawn: assumed. It interrupts those
that last until it shows; of short jobs few."""


@dataclass(frozen=True, slots=True)
class Failing:
    """How a job ends and what it takes: the seconds of each of its ``attempts``, on all its GPUs; the last ends it.

    ``cause``: of failed attempts, of the last of them where machines interrupt several (``interrupted_by``: a cause for
    each); empty if none fails. ``early_share``: of its epochs, those after which it is within
    0.1 % of its best. ``before_s``: seconds that its first iteration takes on one GPU before it may ask for its GPUs.
    """

    status: Status
    cause: str
    attempts: tuple[float, ...]
    early_share: float = 1.0
    before_s: float = 0.0
    interrupted_by: tuple[str, ...] = ()

    @property
    def ran_s(self) -> float:
        """Seconds of all attempts."""
        return sum(self.attempts)

    @property
    def failed_s(self) -> tuple[float, ...]:
        """Seconds of each attempt that fails: all of an unsuccessful job, all but the last of any other."""
        return self.attempts if self.status == "unsuccessful" else self.attempts[:-1]

    @property
    def failures(self) -> tuple[tuple[str, float], ...]:
        """The cause of each attempt that fails, and its seconds."""
        causes = self.interrupted_by or (self.cause,) * len(self.failed_s)
        return tuple(zip(causes, self.failed_s, strict=True))


EARLY: Final = (0.75, 0.4)
"""Published: 75 % of the jobs are within 0.1 % of their best after 40 % of their epochs."""


def failing(name: str, gpus: int, duration_s: float, seed: int, retries: int = RETRIES) -> Failing:
    """Draw how a job of ``duration_s`` ends, by Philly's shares and causes; the same seed and name give the same.

    A job that passes takes its duration, and begins again where a machine fails before that; a killed one takes a part
    of it; an unsuccessful one takes what its cause needs to show, each time.
    """
    chance = Random(f"{seed}|failing|{name}")
    drawn, early = chance.random(), chance.random()
    if drawn < SHARES["passed"]:
        interrupted = _interruptions(chance, gpus, duration_s)[: 1 + retries]
        causes, seconds_of = tuple(cause for cause, _ in interrupted), tuple(seconds for _, seconds in interrupted)
        last = causes[-1] if causes else ""
        if len(interrupted) > retries:  # machines have failed it once too often
            return Failing("unsuccessful", last, seconds_of, interrupted_by=causes)
        share = EARLY[1] if early < EARLY[0] else 1.0
        return Failing("passed", last, (*seconds_of, duration_s), share, interrupted_by=causes)
    if drawn < SHARES["passed"] + SHARES["killed"]:
        return Failing("killed", "", (duration_s * chance.random(),))
    cause = _cause(chance, gpus, repeats=True)
    seconds = CAUSES[cause].time_to_failure_s(chance.random())
    return Failing("unsuccessful", cause, (seconds,) * (1 + retries))


def _interruptions(chance: Random, gpus: int, duration_s: float) -> list[tuple[str, float]]:
    """Causes and seconds of the attempts that machines end before the job would."""
    found: list[tuple[str, float]] = []
    while chance.random() < INTERRUPTED:
        cause = _cause(chance, gpus, repeats=False)
        seconds = CAUSES[cause].time_to_failure_s(chance.random())
        if seconds < duration_s:
            found.append((cause, seconds))
    return found


def _cause(chance: Random, gpus: int, *, repeats: bool) -> str:
    """A cause, as often as published; what needs several GPUs fails only jobs that have them."""
    fitting = {
        name: cause.trials
        for name, cause in CAUSES.items()
        if cause.repeats == repeats and (cause.on_one_gpu or gpus > 1)
    }
    return chance.choices(list(fitting), list(fitting.values()))[0]


def with_prerun(fate: Failing, prerun_s: float) -> Failing:
    """Return the job after its first iteration was tried on one cheap GPU, ``prerun_s`` if nothing is wrong.

    What repeats, shows on one GPU and shows by then ends the job there: it never asks for its own GPUs.
    """
    cause = CAUSES.get(fate.cause)
    shows = cause is not None and cause.repeats and cause.on_one_gpu and fate.attempts[0] <= prerun_s
    if fate.status == "unsuccessful" and shows:
        return replace(fate, attempts=(), before_s=fate.attempts[0])
    return replace(fate, before_s=prerun_s)


def with_known_inputs(fate: Failing) -> Failing:
    """Return the job where a bad input is blacklisted: it is not read a second time."""
    cause = CAUSES.get(fate.cause)
    bad = fate.status == "unsuccessful" and cause is not None and cause.input
    return replace(fate, attempts=fate.attempts[:1]) if bad else fate


def without_repeats(fate: Failing) -> Failing:
    """Return the job where nothing that fails in the same way is tried again."""
    if fate.status != "unsuccessful" or not CAUSES[fate.cause].repeats:
        return fate
    return replace(fate, attempts=fate.attempts[:1])


def ended_early(fate: Failing) -> Failing:
    """Return the job ended as soon as its epochs no longer matter, by the first attempt that lasts so long."""
    if fate.status != "passed":
        return fate
    end_s = fate.early_share * fate.attempts[-1]
    before = tuple(takewhile(lambda seconds: seconds < end_s, fate.attempts[:-1]))
    causes = fate.interrupted_by[: len(before)]
    return replace(fate, cause=causes[-1] if causes else "", attempts=(*before, end_s), interrupted_by=causes)


def prerun_ends(arrivals: Sequence[tuple[float, float]], gpus: int) -> list[float]:
    """Return when each (submission, seconds) has been tried on one of ``gpus`` GPUs, first come first served."""
    if gpus < 1:
        raise ValueError(f"a pre-run needs at least 1 GPU, not {gpus}")
    free_s = [0.0] * gpus
    ends: list[float] = []
    for submit_s, seconds in arrivals:
        place = min(range(gpus), key=free_s.__getitem__)
        free_s[place] = max(submit_s, free_s[place]) + seconds
        ends.append(free_s[place])
    return ends
