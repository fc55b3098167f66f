"""None takes what comes first; consolidated takes fewest hosts, fewest ToRs, the tightest fit."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.clos import clos
from workloads.managers.cluster_state import ClusterState, empty_cluster
from workloads.managers.jobs import Waiting
from workloads.managers.placers.consolidated import Consolidated
from workloads.managers.placers.first_free import FirstFree

FABRIC = clos(hosts=6, gpus_per_host=4, nics_per_host=2, tors=3, aggregations=2, port_rate=1e9, fabric_rate=1e9)


def cluster(*free: int) -> ClusterState:
    """Hosts with so many free GPUs, the last ones of each."""
    taken = tuple(gpu for host, room in zip(FABRIC.hosts.values(), free, strict=True) for gpu in host.gpus[: 4 - room])
    state = empty_cluster(FABRIC)
    return state.start(Waiting("before", len(taken)), taken) if taken else state


def hosts(state: ClusterState, placer: Consolidated | FirstFree, gpus: int) -> dict[str, int]:
    placement = placer.place(state, Waiting("j", gpus), gpus)
    assert placement is not None
    on = [FABRIC.host_of_gpu[gpu] for gpu in placement.gpus]
    return {host: on.count(host) for host in dict.fromkeys(on)}


def test_none_takes_the_first_free_gpus_whatever_they_split() -> None:
    assert hosts(cluster(1, 2, 4, 4, 4, 4), FirstFree(), 4) == {"h0": 1, "h1": 2, "h2": 1}


@pytest.mark.parametrize(
    ("free", "gpus", "expected"),
    [
        ((1, 2, 4, 4, 4, 4), 4, {"h2": 4}),
        ((4, 4, 3, 4, 2, 4), 2, {"h4": 2}),
        ((4, 4, 2, 4, 2, 3), 2, {"h4": 2}),
        ((4, 4, 4, 4, 4, 0), 8, {"h0": 4, "h1": 4}),
        ((0, 4, 4, 4, 4, 0), 8, {"h2": 4, "h3": 4}),
        ((0, 4, 4, 4, 4, 0), 12, {"h1": 4, "h2": 4, "h3": 4}),
        ((3, 3, 4, 0, 4, 1), 8, {"h2": 4, "h4": 4}),
        ((4, 4, 4, 2, 4, 4), 6, {"h2": 4, "h3": 2}),
        ((4, 4, 3, 4, 4, 4), 10, {"h0": 4, "h1": 4, "h2": 2}),
    ],
)
def test_fewest_hosts_then_fewest_tors_then_the_tightest(
    free: tuple[int, ...], gpus: int, expected: dict[str, int]
) -> None:
    assert hosts(cluster(*free), Consolidated(), gpus) == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=6, max_size=6), st.integers(1, 24))
def test_no_placement_uses_fewer_hosts(free: list[int], gpus: int) -> None:
    state = cluster(*free)
    placement = Consolidated().place(state, Waiting("j", gpus), gpus)
    if gpus > sum(free):
        assert placement is None
        return
    assert placement is not None
    needed = next(n for n in range(1, 7) if any(sum(some) >= gpus for some in combinations(free, n)))
    assert len({FABRIC.host_of_gpu[gpu] for gpu in placement.gpus}) == needed
