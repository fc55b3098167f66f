"""Priority assignment of Crux (section 4.2): P_j = k_j * I_j, k_j from a two-job simulation.

Where the paper is silent: the pair is simulated from several phase offsets with a warm-up dropped, and the
differences averaged; k_j is clamped to [1 / c, c]; where neither job gains from going first k_j is 1. Of jobs with
equal priority the one that gains more work in the warm-up goes first, as in Example 2 of the paper, whose two
jobs differ in nothing but a transient; then the first by job id.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from math import inf

from controller.schedulers.crux.intensity import Profile
from controller.schedulers.crux.pair_closed_form import higher_sending_time, lower_sending_time
from controller.schedulers.crux.pair_simulation import State, sending_times
from workloads.periodic_job import PeriodicJob, on_one_link

Times = tuple[float, float, float]
"""Of an iteration, in seconds: compute, communication, lead."""

CLAMP = 10.0
"""c: k_j stays between 1 / c and c; 1 leaves the order to intensity alone. See ``benchmarks/clamp.py``."""
PHASES = 4
WARMUP_PERIODS = 3
MEASURED_PERIODS = 9
NEGLIGIBLE = 1e-3
"""A gain below this share of the simulated time is rounding or the edge of the window."""
EQUAL = 1e-9
"""Priorities that differ by a smaller share are equal: bytes over capacities are rounded."""
TIE = 1e-6
"""The least that priorities weigh beside lost throughput: enough to order jobs that lost the same."""


def reference_of(profiles: Sequence[Profile]) -> Profile:
    """Return the job with the most traffic in bytes per second, the first of ``profiles`` on a tie."""
    return min(profiles, key=lambda profile: -profile.traffic)


def pattern_of(profile: Profile) -> PeriodicJob[str]:
    """Return the iteration of ``profile`` on one link: compute and communication continuous, simple overlap."""
    return on_one_link(profile.compute_s, profile.communication_s, min(profile.lead_s, profile.compute_s))


def correction_factor(job: PeriodicJob[str], reference: PeriodicJob[str], clamp: float = CLAMP) -> float:
    """Return k_j of ``job`` against ``reference`` (k_r = 1): gain of ``job`` from going first / gain of the other.

    At least 1 / ``clamp`` and at most ``clamp``, which is 1 or more.
    """
    return clamped_factor(_times(job), _times(reference), clamp)


def clamped_factor(job: Times, reference: Times, clamp: float) -> float:
    """As :func:`correction_factor`, of times of an iteration."""
    if job == reference:
        return 1.0
    return min(clamp, max(1 / clamp, _factor(*job, *reference)))


def transient_gain(job: Profile, reference: Profile) -> float:
    """Return the FLOPs that ``job`` gains by going before ``reference``, less what that loses, in the warm-up.

    The seconds gained of each job's sending, times its intensity, over the :data:`WARMUP_PERIODS` that k_j leaves
    out (the 12 s of Example 2), averaged over the phases of k_j.
    """
    one, other = pattern_of(job), pattern_of(reference)
    if one == other:
        return 0.0
    job_gain_s, reference_gain_s = _transient(*_times(one), *_times(other))
    return (job.intensity * job_gain_s - reference.intensity * reference_gain_s) / PHASES


def _times(job: PeriodicJob[str]) -> Times:
    return job.compute_s, job.communication_s, job.lead_s


def times_of(profile: Profile) -> Times:
    """The times of :func:`pattern_of`, without it."""
    return profile.compute_s, profile.communication_s, min(profile.lead_s, profile.compute_s)


@lru_cache(maxsize=16384)
def _factor(
    compute_s: float,
    communication_s: float,
    lead_s: float,
    reference_compute_s: float,
    reference_communication_s: float,
    reference_lead_s: float,
) -> float:
    """The factor of two jobs on one link, kept by numbers: jobs hash without their loads, and many would collide."""
    job = on_one_link(compute_s, communication_s, lead_s)
    reference = on_one_link(reference_compute_s, reference_communication_s, reference_lead_s)
    longest = max(job.period_s, reference.period_s)
    duration_s, warmup_s = MEASURED_PERIODS * longest, WARMUP_PERIODS * longest
    job_gain, reference_gain = _gains(job, reference, (warmup_s, warmup_s + duration_s))
    return _ratio(job_gain, reference_gain, NEGLIGIBLE * duration_s * PHASES)


@lru_cache(maxsize=16384)
def _transient(
    compute_s: float,
    communication_s: float,
    lead_s: float,
    reference_compute_s: float,
    reference_communication_s: float,
    reference_lead_s: float,
) -> tuple[float, float]:
    """The seconds that each of two jobs on one link gains from going first in the warm-up, phases added up."""
    job = on_one_link(compute_s, communication_s, lead_s)
    reference = on_one_link(reference_compute_s, reference_communication_s, reference_lead_s)
    return _gains(job, reference, (0.0, WARMUP_PERIODS * max(job.period_s, reference.period_s)))


def _gains(job: PeriodicJob[str], reference: PeriodicJob[str], window: tuple[float, float]) -> tuple[float, float]:
    """Seconds of sending in ``window`` that each gains from going first, added up over the phases of ``job``."""
    job_gain = reference_gain = 0.0
    reference_first = higher_sending_time(reference, 0.0, *window)
    for phase in range(PHASES):
        offset_s = job.period_s * phase / PHASES
        job_second = lower_sending_time(job, offset_s, reference, 0.0, *window)
        reference_second = lower_sending_time(reference, 0.0, job, offset_s, *window)
        job_gain += max(0.0, higher_sending_time(job, offset_s, *window) - job_second)
        reference_gain += max(0.0, reference_first - reference_second)
    return job_gain, reference_gain


def _ratio(job_gain: float, reference_gain: float, negligible: float) -> float:
    if job_gain < negligible and reference_gain < negligible:
        return 1.0
    return inf if reference_gain < negligible else job_gain / reference_gain


def priority_gains(one: State, other: State, duration_s: float, warmup_s: float = 0.0) -> tuple[float, float]:
    """Return how many more seconds each job sends when it goes first than when it goes second (dS of the paper)."""
    one_high, other_low = sending_times(_copy(one), _copy(other), duration_s, warmup_s)
    other_high, one_low = sending_times(_copy(other), _copy(one), duration_s, warmup_s)
    return one_high - one_low, other_high - other_low


def _copy(state: State) -> State:
    return State(state.pattern, state.compute_left, state.lead_left, state.communication_left)


def correction_factors(profiles: Sequence[Profile], clamp: float = CLAMP) -> dict[str, float]:
    """Return job -> k_j for jobs that communicate; the reference job has 1."""
    if not profiles:
        return {}
    reference = times_of(reference_of(profiles))
    return {profile.job: clamped_factor(times_of(profile), reference, clamp) for profile in profiles}


def blended_with_loss(
    priorities: Mapping[str, float], throughput: Mapping[str, float], fairness: float
) -> dict[str, float]:
    """Return job -> (1 - f) * P_j / max P + f * loss_j: jobs that lost throughput rise (suggested in section 7.2).

    ``throughput``: job -> recent iterations per second over those of the job alone; the loss is 1
    less that, 0 where it is not known. ``fairness`` f is from 0, which keeps ``priorities``, to 1, where P only decides
    between jobs that lost the same.
    """
    largest = max(priorities.values(), default=0.0)
    if fairness == 0 or largest <= 0:
        return dict(priorities)
    loss = {job: 1 - min(1.0, max(0.0, throughput.get(job, 1.0))) for job in priorities}
    own = max(1 - fairness, TIE)
    return {job: own * value / largest + fairness * loss[job] for job, value in priorities.items()}


def priority_order(priorities: Mapping[str, float], profiles: Mapping[str, Profile] | None = None) -> tuple[str, ...]:
    """Return the jobs, highest priority first; of equal ones the larger :func:`transient_gain` first.

    Then in the order of ``priorities``, which is that of arrival. ``profiles``: job -> its profile, for all jobs of
    ``priorities``, in the same order; without them equal ones are ordered by arrival alone.
    """
    order = sorted(priorities, key=lambda job: -priorities[job])
    if not profiles:
        return tuple(order)
    arrival = {job: number for number, job in enumerate(priorities)}
    reference: Profile | None = None
    for begin, end in ties([priorities[job] for job in order]):
        tied = order[begin:end]
        if len({times_of(profiles[job]) for job in tied}) > 1:
            reference = reference or reference_of(tuple(profiles.values()))
            gains = {job: transient_gain(profiles[job], reference) for job in tied}
            order[begin:end] = sorted(tied, key=lambda job: (-gains[job], arrival[job]))
    return tuple(order)


def reordered(order: Sequence[str], priorities: Mapping[str, float]) -> list[str]:
    """Return the jobs of ``order``, highest of ``priorities`` first; of equal ones the first in ``order`` first."""
    place = {job: rank for rank, job in enumerate(order)}
    found = sorted(order, key=lambda job: -priorities[job])
    for begin, end in ties([priorities[job] for job in found]):
        found[begin:end] = sorted(found[begin:end], key=place.__getitem__)
    return found


def ties(falling: Sequence[float]) -> Iterator[tuple[int, int]]:
    """Stretches (begin, end) of two or more ``falling`` values that equal the first of the stretch."""
    begin = 0
    for place in range(1, len(falling) + 1):
        if place == len(falling) or falling[begin] - falling[place] > EQUAL * abs(falling[begin]):
            if place - begin > 1:
                yield begin, place
            begin = place
