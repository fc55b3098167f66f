"""Correction factors that are kept against those worked out anew, over whole histories."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.schedulers.crux.intensity import Profile
from controller.schedulers.crux.priority import KnownFactors, correction_factors

PROFILES = {
    job: [
        Profile(job, 1.0, communication_s, compute_s, lead_s=compute_s / 2, iteration_s=1.0, traffic=traffic)
        for communication_s, compute_s, traffic in ((0.1, 0.3, 5.0), (0.4, 0.2, 1.0 + place), (0.2, 0.8, 9.0 - place))
    ]
    for place, job in enumerate("abcd")
}
MOMENT = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2))


@given(st.lists(MOMENT, min_size=1, max_size=5))
def test_known_factors_are_those_worked_out_anew(history: list[dict[str, int]]) -> None:
    known = KnownFactors()
    for moment in history:
        profiles = {job: PROFILES[job][kind] for job, kind in moment.items()}
        assert list(known.of(profiles).items()) == list(correction_factors(tuple(profiles.values())).items())
