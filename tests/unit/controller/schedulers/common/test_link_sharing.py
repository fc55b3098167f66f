"""Who shares a link with whom, however jobs came, went and moved before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.schedulers.common.link_sharing import LinkSharing

LINKS = st.frozensets(st.integers(0, 12), max_size=4)
NOBODY: frozenset[str] = frozenset()
CLUSTERS = st.dictionaries(st.sampled_from("abcdefgh"), LINKS, max_size=8)


def groups_by_definition(links: dict[str, frozenset[int]]) -> set[frozenset[str]]:
    """Groups grown one pair at a time until no link joins two of them."""
    groups = {frozenset([job]) for job in links}
    while True:
        used = {group: frozenset[int]().union(*(links[job] for job in group)) for group in groups}
        pair = next(((a, b) for a in groups for b in groups if a != b and used[a] & used[b]), None)
        if pair is None:
            return groups
        groups = groups - set(pair) | {pair[0] | pair[1]}


@given(st.lists(CLUSTERS, min_size=1, max_size=6))
def test_neighbours_and_groups_are_those_of_the_jobs_there_are_now(history: list[dict[str, frozenset[int]]]) -> None:
    users = LinkSharing()
    for links in history:
        users.follow(links)
        for job, own in links.items():
            assert users.beside(job) == {other for other in links if other != job and links[other] & own}
        assert {frozenset(group) for group in users.joined(links)} == groups_by_definition(links)


@given(st.lists(CLUSTERS, min_size=1, max_size=6))
def test_only_jobs_said_to_have_changed_have_other_neighbours(history: list[dict[str, frozenset[int]]]) -> None:
    users = LinkSharing()
    before: dict[str, frozenset[str]] = {}
    for links in history:
        changed = users.follow(links)
        now = {job: frozenset(users.beside(job)) for job in links}
        either = links.keys() | before.keys()
        assert changed >= {job for job in either if now.get(job, NOBODY) != before.get(job, NOBODY)}
        before = now


def test_only_groups_around_the_given_jobs_are_found() -> None:
    users = LinkSharing()
    users.follow({"a": {0}, "b": {0, 1}, "c": {1, 2}, "d": {3}, "e": set()})
    assert users.joined(["c", "d"]) == [{"a", "b", "c"}, {"d"}]
    assert users.joined(["e"]) == [{"e"}]
