"""Parts and contention that are kept against those of the jobs there are now, over whole histories."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controller.schedulers.common.link_sharing import LinkSharing
from controller.schedulers.crux.kept.parts import MANY, ContendingParts
from controller.schedulers.crux.levels.contention_graph import ContentionGraph

JOBS = [f"{letter}{number}" for letter in "ab" for number in range(12)]
LINKS = st.frozensets(st.integers(0, 15), max_size=2)
CHANGE = st.dictionaries(st.sampled_from(JOBS), st.none() | LINKS, max_size=2)


def edges(graph: ContentionGraph) -> list[tuple[int, int, float]]:
    return sorted(zip(graph.higher.tolist(), graph.lower.tolist(), graph.weight.tolist(), strict=True))


@given(
    st.dictionaries(st.sampled_from(JOBS), LINKS),
    st.lists(CHANGE, max_size=8),
    st.permutations(JOBS),
    st.sampled_from((0, MANY)),
)
def test_parts_and_their_graphs_are_those_of_the_jobs_there_are_now(
    links: dict[str, frozenset[int]], history: list[dict[str, frozenset[int] | None]], ranking: list[str], many: int
) -> None:
    users = LinkSharing()
    parts = ContendingParts(users)
    before: dict[str, tuple[int, set[str]]] = {}
    for change in [{}, *history]:
        links = {job: own for job, own in (links | change).items() if own is not None}
        with patch("controller.schedulers.crux.kept.parts.MANY", many):
            parts.follow(users.follow(links))
        contending = [job for job in links if users.beside(job)]
        assert parts.part_of.keys() == set(contending)
        numbers: dict[int, list[str]] = {}
        for job in ranking:
            if job in parts.part_of:
                numbers.setdefault(parts.part_of[job], []).append(job)
        expected = [frozenset(group) for group in users.joined(contending)]
        assert sorted(map(sorted, numbers.values())) == sorted(map(sorted, expected))
        for order in numbers.values():
            intensities = np.arange(len(order), 0.0, -1.0)
            found = parts.graph(order, intensities)
            assert edges(found) == edges(ContentionGraph.among(order, users.beside, intensities.tolist()))
            assert (np.diff(found.higher) >= 0).all()
        now = {job: (parts.part_of[job], set(users.beside(job))) for job in contending}
        for job in contending:
            if job in before and before[job][0] == now[job][0]:  # the number stands for all of the part
                mates = [other for other in contending if now[other][0] == now[job][0]]
                assert all(before.get(other) == now[other] for other in mates)
        before = now
