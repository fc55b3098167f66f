"""Optimus's placement and that of Pollux's simulator: the fewest servers, the emptiest first."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from topologies.clos import clos
from workloads.managers.cluster_state import ClusterState, empty_cluster
from workloads.managers.interfaces import Placer
from workloads.managers.jobs import Waiting
from workloads.managers.registry import create

FABRIC = clos(hosts=4, gpus_per_host=4, nics_per_host=1, tors=2, aggregations=1, port_rate=1e9, fabric_rate=1e9)


def taken(*counts: int) -> ClusterState:
    """The cluster with so many GPUs of each host in use."""
    state = empty_cluster(FABRIC)
    for host, count in enumerate(counts):
        if count:
            state = state.start(Waiting(f"there-{host}", count), tuple(f"h{host}g{gpu}" for gpu in range(count)))
    return state


def parts(placer: str, state: ClusterState, gpus: int) -> dict[str, int] | None:
    chosen: Placer = create("placer", placer)  # type: ignore[assignment]
    placement = chosen.place(state, Waiting("new", gpus), gpus)
    return None if placement is None else dict(Counter(FABRIC.host_of_gpu[gpu] for gpu in placement.gpus))


def test_the_emptiest_server_is_filled_first() -> None:
    assert parts("most-free", taken(1, 0, 2, 4), 6) == {"h0": 2, "h1": 4}


def test_a_job_is_split_equally_over_the_fewest_servers() -> None:
    assert parts("equal-split", taken(1, 0, 2, 4), 6) == {"h0": 3, "h1": 3}
    assert parts("equal-split", taken(2, 2, 2, 2), 6) == {"h0": 2, "h1": 2, "h2": 2}
    assert parts("equal-split", taken(0, 0, 0, 0), 4) == {"h0": 4}


def test_without_room_for_equal_parts_a_job_is_on_the_fewest_servers() -> None:
    assert parts("equal-split", taken(0, 3, 3, 3), 7) == {"h0": 4, "h1": 1, "h2": 1, "h3": 1}
    assert parts("equal-split", taken(3, 3, 3, 3), 5) is None


@given(st.tuples(*[st.integers(0, 4)] * 4), st.integers(1, 16))
def test_equal_parts_never_take_more_servers_than_filling_needs_if_they_can_be_equal(
    used: tuple[int, int, int, int], gpus: int
) -> None:
    filled, equal = parts("most-free", taken(*used), gpus), parts("equal-split", taken(*used), gpus)
    assert (filled is None) == (equal is None) == (gpus > 16 - sum(used))
    if filled is not None and equal is not None:
        assert sum(filled.values()) == sum(equal.values()) == gpus
        assert len(filled) <= len(equal)
        assert max(equal.values()) - min(equal.values()) <= 1 or len(equal) == len(filled)
