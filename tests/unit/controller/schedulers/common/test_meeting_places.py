"""Who is at a place, however jobs came and went before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.schedulers.common.meeting_places import MeetingPlaces

PLACES = st.frozensets(st.integers(0, 12), max_size=4)
CLUSTERS = st.dictionaries(st.sampled_from("abcdefgh"), PLACES, max_size=8)


@given(st.lists(CLUSTERS, min_size=1, max_size=6), PLACES)
def test_at_places_are_the_jobs_that_have_one_of_them(
    history: list[dict[str, frozenset[int]]], asked: frozenset[int]
) -> None:
    meeting = MeetingPlaces()
    known: dict[str, frozenset[int]] = {}
    for jobs in history:
        for job in known.keys() - jobs.keys():
            meeting.remove(job)
        for job, places in jobs.items():
            meeting.put(job, places)
        known = jobs
        assert meeting.at(asked) == {job for job, places in jobs.items() if places & asked}
