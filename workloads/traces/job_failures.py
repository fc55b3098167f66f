"""Outcomes of jobs: they pass, are killed or fail, and are retried (Philly's shares; drawn, so synthetic).

Shares of jobs are those published for Philly (Jeon et al., ATC 2019): 60.4 % pass, 9.0 % are killed, 30.5 % fail. User
errors come early and repeat; infrastructure fails late and seldom twice; semantic errors hit large jobs late.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from random import Random
from types import MappingProxyType
from typing import Final, Literal

from workloads.traces.trace import Trace

Status = Literal["passed", "killed", "unsuccessful"]
Cause = Literal["", "user", "infrastructure", "semantic"]

SHARES: Final[Mapping[Status, float]] = MappingProxyType({"passed": 0.604, "killed": 0.090, "unsuccessful": 0.306})
STATUS_OF_FATE: Final[Mapping[str, Status]] = MappingProxyType(
    {"pass": "passed", "kill": "killed", "fail": "unsuccessful"}
)
"""Fate of a job in a trace -> status of its outcome."""
RETRIES: Final = 4
LARGE_GPUS: Final = 8
USER_ERROR_S: Final = 120.0
"""Mean seconds until a user error shows."""


@dataclass(frozen=True, slots=True)
class Fate:
    """How a job ends, and the seconds of each attempt; the last one ends it."""

    status: Status
    cause: Cause
    attempts: tuple[float, ...]

    @property
    def ran_s(self) -> float:
        """Seconds of all attempts."""
        return sum(self.attempts)


def fate_of(key: str, gpus: int, duration_s: float, seed: int, retries: int = RETRIES) -> Fate:
    """Draw the fate of a job whose recorded duration is ``duration_s``; the same seed and key give the same."""
    random = Random(f"{seed}|fate|{key}")
    drawn = random.random()
    if drawn < SHARES["passed"]:
        return Fate("passed", "", _with_interruptions(random, duration_s, retries))
    if drawn < SHARES["passed"] + SHARES["killed"]:
        return Fate("killed", "", (duration_s * random.random(),))
    cause: Cause = "semantic" if gpus > LARGE_GPUS and random.random() < 0.5 else "user"
    if cause == "semantic":  # during model synchronisation, late, and the same each time
        return Fate("unsuccessful", cause, (duration_s * random.uniform(0.5, 1.0),) * (1 + retries))
    each = tuple(min(duration_s, random.expovariate(1 / USER_ERROR_S)) for _ in range(1 + retries))
    return Fate("unsuccessful", cause, each)


def _with_interruptions(random: Random, duration_s: float, retries: int) -> tuple[float, ...]:
    """A job that passes in the end: now and then infrastructure fails after a long time, and it begins again."""
    attempts: list[float] = []
    while len(attempts) < retries and random.random() < 0.03:
        attempts.append(duration_s * random.uniform(0.3, 1.0))
    return (*attempts, duration_s)


def with_prerun(fate: Fate, first_iteration_s: float) -> Fate:
    """The policy of running the first iteration on one cheap GPU: user errors show there, and are not retried."""
    return Fate(fate.status, fate.cause, (min(first_iteration_s, fate.attempts[0]),)) if fate.cause == "user" else fate


def without_repeats(fate: Fate) -> Fate:
    """The policy of not retrying what fails in the same way: bad input is blacklisted."""
    return Fate(fate.status, fate.cause, fate.attempts[:1]) if fate.status == "unsuccessful" else fate


def ended_early(fate: Fate, share: float = 0.4) -> Fate:
    """The policy of ending a job at ``share`` of its epochs: 75 % of jobs are within 0.1 % of their best by then.

    The first attempt that lasts so long ends it: what would have interrupted that attempt later does not happen.
    """
    if fate.status != "passed":
        return fate
    end_s = share * fate.attempts[-1]
    before = takewhile(lambda seconds: seconds < end_s, fate.attempts[:-1])
    return Fate(fate.status, fate.cause, (*before, end_s))


def with_retries(trace: Trace, retries: int) -> Trace:
    """Return the trace with ``retries`` more attempts for each failed job that has one: it fails the same way again.

    Each attempt is as long as the job in ``trace`` (Philly: most failures are user errors, which repeat).
    """
    if retries < 0:
        raise ValueError(f"retries must be 0 or more, not {retries}")
    if not retries:
        return trace
    changed = tuple(
        replace(job, attempts=1 + retries, duration_s=job.duration_s * (1 + retries))
        if job.fate == "fail" and job.attempts == 1
        else job
        for job in trace.jobs
    )
    return replace(trace, jobs=changed, notes=(*trace.notes, f"each failed job is tried {1 + retries} times: assumed"))
