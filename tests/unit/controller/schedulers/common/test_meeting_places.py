"""Who is joined by places in common, however jobs came and went before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.schedulers.common.link_sharing import LinkSharing
from controller.schedulers.common.meeting_places import MeetingPlaces

PLACES = st.frozensets(st.integers(0, 12), max_size=4)
CLUSTERS = st.dictionaries(st.sampled_from("abcdefgh"), PLACES, max_size=8)


@given(st.lists(CLUSTERS, min_size=1, max_size=6), PLACES)
def test_joined_are_the_jobs_that_share_places_directly_or_through_others(
    history: list[dict[str, frozenset[int]]], asked: frozenset[int]
) -> None:
    meeting, sharing = MeetingPlaces(), LinkSharing()
    known: dict[str, frozenset[int]] = {}
    for jobs in history:
        for job in known.keys() - jobs.keys():
            assert meeting.remove(job) == known[job]
        for job, places in jobs.items():
            meeting.put(job, places)
        sharing.follow(jobs)
        known = jobs
        for job in jobs:
            assert meeting.joined([job]) == set().union(*sharing.joined([job]))
        assert meeting.joined([], asked) == set[str]().union(*sharing.joined(sharing.using(asked)))
