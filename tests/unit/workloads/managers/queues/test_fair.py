"""Fair shares: YARN's worked examples, and what must always hold; fair queues of virtual clusters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.clos import clos
from workloads.managers.cluster_state import empty_cluster
from workloads.managers.jobs import Waiting
from workloads.managers.queues.fair import Fair
from workloads.managers.queues.fair_share import Share, fair_shares

FABRIC = clos(hosts=4, gpus_per_host=4, nics_per_host=1, tors=1, aggregations=1, port_rate=1e9, fabric_rate=1e9)


@pytest.mark.parametrize(
    ("first", "expected"),
    [(Share(1), [25, 25, 50]), (Share(1, least=40), [40, 20, 40]), (Share(1, most=10), [10, 30, 60])],
)
def test_yarns_example_of_a_hundred(first: Share, expected: list[int]) -> None:
    assert list(fair_shares(100, {"a": first, "b": Share(1), "c": Share(2)}).values()) == expected


@given(
    total=st.integers(0, 5000),
    shares=st.lists(
        st.tuples(st.floats(0.1, 10), st.integers(0, 50), st.integers(0, 500)).map(
            lambda drawn: Share(drawn[0], float(drawn[1]), float(drawn[1] + drawn[2]))
        ),
        min_size=1,
        max_size=8,
    ),
)
def test_shares_keep_to_their_bounds_and_give_away_all_that_they_can(total: int, shares: list[Share]) -> None:
    queues = {str(place): share for place, share in enumerate(shares)}
    found = fair_shares(total, queues)
    assert all(queues[name].least <= gpus <= queues[name].most for name, gpus in found.items()) or total == 0
    wanted = min(total, sum(share.most for share in shares))
    at_least = max(wanted, 0) if wanted else 0
    assert sum(found.values()) >= at_least - len(shares) * (wanted > 0)


def waiting(*jobs: tuple[str, str, int]) -> list[Waiting]:
    return [Waiting(name, gpus, virtual_cluster=cluster) for name, cluster, gpus in jobs]


def order(queue: Fair, *jobs: tuple[str, str, int]) -> list[str]:
    return [turn.job.name for turn in queue.eligible(empty_cluster(FABRIC), waiting(*jobs))]


def test_virtual_clusters_take_turns_by_weight() -> None:
    jobs = [("a1", "a", 4), ("a2", "a", 4), ("a3", "a", 4), ("b1", "b", 4), ("b2", "b", 4)]
    assert order(Fair(), *jobs) == ["a1", "b1", "a2", "b2", "a3"]
    heavy = Fair(shares={"a": {"weight": 3.0}})
    assert order(heavy, *jobs)[:4] == ["a1", "b1", "a2", "a3"]


def test_a_cluster_below_its_least_share_comes_first_and_none_gets_more_than_its_most() -> None:
    queue = Fair(shares={"b": {"least": 8}, "a": {"most": 4}})
    assert order(queue, ("a1", "a", 4), ("a2", "a", 4), ("b1", "b", 4), ("b2", "b", 4)) == ["b1", "b2", "a1"]


def test_a_share_that_is_wrong_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match="unknown key 'wieght', expected weight, least or most"):
        Fair(shares={"a": {"wieght": 1}})
    with pytest.raises(ValueError, match="must have weight > 0 and 0 <= least <= most"):
        Fair(shares={"a": {"least": 5, "most": 4}})
