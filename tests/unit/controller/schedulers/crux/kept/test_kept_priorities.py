"""Factors, priorities and orders that are kept against those worked out anew, over whole histories."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from controller.schedulers.common.changes import changes
from controller.schedulers.crux.intensity import Profile
from controller.schedulers.crux.kept.priorities import MANY, KeptPriorities
from controller.schedulers.crux.priority import correction_factors, priority_order, reference_of

JOBS = "abcdefghijklmnopqrst"
ITERATIONS = ((0.1, 0.3, 5.0), (0.4, 0.2, 1.0), (0.2, 0.8, 9.0), (0.2, 0.8, 3.0))
PROFILES = {
    job: [
        Profile(job, intensity, communication_s, compute_s, compute_s / 2, iteration_s=1.0, traffic=traffic)
        for intensity in (1.0, 1.0 + 6e-10, 1.0 + 1.2e-9, 2.0)
        for communication_s, compute_s, traffic in ITERATIONS
    ]
    for job in JOBS
}
"""Many tie within the share that counts as equal, some only with a neighbour and not with the neighbour's neighbour."""
KIND = st.integers(0, 15)
CHANGE = st.dictionaries(st.sampled_from(JOBS), st.none() | KIND, max_size=3)


@given(
    st.dictionaries(st.sampled_from(JOBS), KIND),
    st.lists(CHANGE, max_size=5),
    st.sampled_from((1.0, 2.0, 10.0)),
    st.sampled_from((0, MANY)),
)
def test_kept_priorities_and_their_order_are_those_worked_out_anew(
    kinds: dict[str, int], history: list[dict[str, int | None]], clamp: float, many: int
) -> None:
    kept, before = KeptPriorities(clamp), dict[str, Profile]()
    for change in [{}, *history]:
        kinds = {job: kind for job, kind in (kinds | change).items() if kind is not None}
        profiles = {job: PROFILES[job][kind] for job, kind in kinds.items()}
        with patch("controller.schedulers.crux.kept.priorities.MANY", many):
            kept.follow(changes(before, profiles))
        before = profiles
        factors = correction_factors(tuple(profiles.values()), clamp)
        priorities = {job: factor * profiles[job].intensity for job, factor in factors.items()}
        assert kept.reference is (reference_of(tuple(profiles.values())) if profiles else None)
        assert list(kept.factors.items()) == list(factors.items())
        assert list(kept.priorities.items()) == list(priorities.items())
        assert list(kept.intensities.items()) == [(job, each.intensity) for job, each in profiles.items()]
        assert list(kept.communication_s.items()) == [(job, each.communication_s) for job, each in profiles.items()]
        assert kept.order() == list(priority_order(priorities, profiles))
        with patch("controller.schedulers.crux.kept.priorities.FEW", 0):
            assert kept.order() == list(priority_order(priorities, profiles))


def test_iterations_that_no_job_has_any_more_are_forgotten() -> None:
    kept, before = KeptPriorities(), dict[str, Profile]()
    for number in range(1000):
        profiles = {job: Profile(job, 1.0, 1.0 + number, 1.0, 0.5, iteration_s=2.0, traffic=1.0) for job in "ab"}
        kept.follow(changes(before, profiles))
        before = profiles
        assert kept.order() == ["a", "b"]
    assert len(kept._patterns) <= 100
