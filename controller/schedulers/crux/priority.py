"""Priority assignment of Crux (section 4.2): P_j = k_j * I_j, k_j from a two-job simulation.

Where the paper is silent: the pair is simulated from several phase offsets with a warm-up
dropped, and the differences averaged; k_j is clamped; where neither job gains from going first
k_j is 1; equal priorities are ordered by job id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from controller.schedulers.crux.intensity import Profile
from controller.schedulers.crux.pair_closed_form import higher_sending_time, lower_sending_time
from controller.schedulers.crux.pair_simulation import State, sending_times
from workloads.periodic_job import PeriodicJob, on_one_link

SMALLEST_FACTOR = 0.1
LARGEST_FACTOR = 10.0
PHASES = 4
WARMUP_PERIODS = 3
MEASURED_PERIODS = 9
NEGLIGIBLE = 1e-3
"""A gain below this share of the simulated time is rounding or the edge of the window."""
TIE = 1e-6
"""The least that priorities weigh beside lost throughput: enough to order jobs that lost the same."""


def reference_of(profiles: Sequence[Profile]) -> Profile:
    """Return the job with the most traffic in bytes per second, the first by name on a tie."""
    return min(profiles, key=lambda profile: (-profile.traffic, profile.job))


def pattern_of(profile: Profile) -> PeriodicJob[str]:
    """Return the iteration of ``profile`` on one link: compute and communication continuous, simple overlap."""
    return on_one_link(profile.compute_s, profile.communication_s, min(profile.lead_s, profile.compute_s))


def correction_factor(job: PeriodicJob[str], reference: PeriodicJob[str]) -> float:
    """Return k_j of ``job`` against ``reference`` (k_r = 1): gain of ``job`` from going first / gain of the other."""
    if job == reference:
        return 1.0
    return _factor(*_times(job), *_times(reference))


def _times(job: PeriodicJob[str]) -> tuple[float, float, float]:
    return job.compute_s, job.communication_s, job.lead_s


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
    job_gain = reference_gain = 0.0
    window = (warmup_s, warmup_s + duration_s)
    reference_first = higher_sending_time(reference, 0.0, *window)
    for phase in range(PHASES):
        offset_s = job.period_s * phase / PHASES
        job_second = lower_sending_time(job, offset_s, reference, 0.0, *window)
        reference_second = lower_sending_time(reference, 0.0, job, offset_s, *window)
        job_gain += max(0.0, higher_sending_time(job, offset_s, *window) - job_second)
        reference_gain += max(0.0, reference_first - reference_second)
    return _ratio(job_gain, reference_gain, NEGLIGIBLE * duration_s * PHASES)


def _ratio(job_gain: float, reference_gain: float, negligible: float) -> float:
    if job_gain < negligible and reference_gain < negligible:
        return 1.0
    if reference_gain < negligible:
        return LARGEST_FACTOR
    return min(LARGEST_FACTOR, max(SMALLEST_FACTOR, job_gain / reference_gain))


def priority_gains(one: State, other: State, duration_s: float, warmup_s: float = 0.0) -> tuple[float, float]:
    """Return how many more seconds each job sends when it goes first than when it goes second (dS of the paper)."""
    one_high, other_low = sending_times(_copy(one), _copy(other), duration_s, warmup_s)
    other_high, one_low = sending_times(_copy(other), _copy(one), duration_s, warmup_s)
    return one_high - one_low, other_high - other_low


def _copy(state: State) -> State:
    return State(state.pattern, state.compute_left, state.lead_left, state.communication_left)


def correction_factors(profiles: Sequence[Profile]) -> dict[str, float]:
    """Return job -> k_j for jobs that communicate; the reference job has 1."""
    return KnownFactors().of({profile.job: profile for profile in profiles})


class KnownFactors:
    """Correction factors from event to event, looked up where neither the job nor the reference has changed."""

    def __init__(self) -> None:
        self._reference: Profile | None = None
        self._known: dict[str, tuple[Profile, float]] = {}

    def of(self, profiles: Mapping[str, Profile]) -> dict[str, float]:
        """Return job -> k_j for jobs that communicate; the reference job has 1."""
        if not profiles:
            return {}
        reference = reference_of(tuple(profiles.values()))
        before = self._known if reference is self._reference else {}
        self._reference, pattern = reference, pattern_of(reference)
        self._known = {
            name: known
            if (known := before.get(name)) is not None and known[0] is profile
            else (profile, correction_factor(pattern_of(profile), pattern))
            for name, profile in profiles.items()
        }
        return {name: factor for name, (_, factor) in self._known.items()}


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


def priority_order(priorities: Mapping[str, float]) -> tuple[str, ...]:
    """Return the jobs, highest priority first; equal ones by job id."""
    return tuple(sorted(priorities, key=lambda job: (-priorities[job], job)))
