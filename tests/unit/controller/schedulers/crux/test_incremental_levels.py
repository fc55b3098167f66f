"""Levels kept part by part against levels of all jobs at once, over whole histories."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from controller.schedulers.common.changes import changes
from controller.schedulers.crux.compression import compress, contending, contention_edges
from controller.schedulers.crux.incremental_levels import IncrementalLevels

JOBS = "abcdefghij"
LINKS = st.frozensets(st.integers(0, 14), min_size=1, max_size=3)
MOMENT = st.dictionaries(st.sampled_from(JOBS), st.tuples(LINKS, st.integers(1, 5)), max_size=10)
LEVELS = st.integers(1, 3)


@given(st.lists(st.tuples(MOMENT, LEVELS, st.permutations(JOBS)), min_size=1, max_size=6))
def test_levels_are_those_of_compressing_all_jobs_at_once(
    history: list[tuple[dict[str, tuple[frozenset[int], int]], int, list[str]]],
) -> None:
    parts, before = IncrementalLevels(), dict[str, frozenset[int]]()
    for jobs, levels, ranking in history:
        order = [job for job in ranking if job in jobs]
        used = {job: links for job, (links, _) in jobs.items()}
        intensity = {job: float(weight) for job, (_, weight) in jobs.items()}
        edges = contention_edges(
            order,
            {job: frozenset(map(str, links)) for job, links in used.items()},
            intensity,
        )
        among = contending(order, edges)
        parts.follow(changes(before, used))
        before = used
        assert parts.contending(order) == list(among)
        found = parts.levels(order, intensity, levels, seed=1)
        assert list(found.items()) == list(compress(among, edges, levels, seed=1).items())
