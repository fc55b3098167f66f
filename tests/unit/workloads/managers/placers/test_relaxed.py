"""Relaxed locality: from consolidated to the first free GPUs by one probability."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.clos import clos
from workloads.managers.cluster_state import ClusterState, empty_cluster
from workloads.managers.interfaces import Placer
from workloads.managers.jobs import Waiting
from workloads.managers.registry import create
from workloads.plugins import Options

FABRIC = clos(hosts=4, gpus_per_host=4, nics_per_host=1, tors=2, aggregations=1, port_rate=1e9, fabric_rate=1e9)
PROBABILITIES = st.floats(0, 1)
COUNTS = st.tuples(*[st.integers(0, 4)] * 4)


def taken(*counts: int) -> ClusterState:
    """The cluster with the first so many GPUs of each host in use."""
    state = empty_cluster(FABRIC)
    for host, count in enumerate(counts):
        if count:
            state = state.start(Waiting(f"there-{host}", count), tuple(f"h{host}g{gpu}" for gpu in range(count)))
    return state


def gpus_of(placer: str, state: ClusterState, job: Waiting, options: Options | None = None, seed: int = 1) -> object:
    chosen: Placer = create("placer", placer, options, seed)  # type: ignore[assignment]
    placement = chosen.place(state, job, job.gpus)
    return None if placement is None else placement.gpus


def relaxed(probability: float, state: ClusterState, job: Waiting, seed: int = 1) -> object:
    return gpus_of("relaxed", state, job, {"probability": probability}, seed)


@given(COUNTS, st.integers(1, 16), st.integers(0, 50))
def test_at_0_every_job_is_consolidated_and_at_1_none_is(counts: tuple[int, ...], gpus: int, number: int) -> None:
    state, job = taken(*counts), Waiting(f"job-{number}", gpus)
    assert relaxed(0, state, job) == gpus_of("consolidated", state, job)
    assert relaxed(1, state, job) == gpus_of("none", state, job)


@given(PROBABILITIES, PROBABILITIES, st.integers(0, 50), st.integers(1, 5))
def test_a_job_that_is_relaxed_is_so_at_every_higher_probability(one: float, other: float, job: int, seed: int) -> None:
    low, high = sorted((one, other))
    state, asked = taken(1, 0, 0, 0), Waiting(f"job-{job}", 4)
    apart = gpus_of("none", state, asked)
    assert apart != gpus_of("consolidated", state, asked)
    assert relaxed(low, state, asked, seed) != apart or relaxed(high, state, asked, seed) == apart


def test_about_that_share_of_the_jobs_is_relaxed() -> None:
    state = taken(1, 0, 0, 0)
    jobs = [Waiting(f"job-{number}", 4) for number in range(1000)]
    apart = sum(relaxed(0.3, state, job) == gpus_of("none", state, job) for job in jobs)
    assert apart == pytest.approx(300, abs=50)


def test_a_job_waits_where_there_are_too_few_gpus() -> None:
    assert relaxed(0.5, taken(4, 4, 4, 2), Waiting("job", 3)) is None


TWO_NICS = clos(hosts=3, gpus_per_host=4, nics_per_host=2, tors=3, aggregations=1, port_rate=1e9, fabric_rate=1e9)
TAKEN = st.sets(st.integers(0, 11))


def by_nic(taken_gpus: set[int], gpus: int) -> list[int] | None:
    """Indices of the GPUs of a relaxed job that takes NICs, where others have ``taken_gpus``."""
    state = empty_cluster(TWO_NICS)
    for gpu in sorted(taken_gpus):
        state = state.start(Waiting(f"there-{gpu}", 1), (TWO_NICS.gpus[gpu],))
    chosen = gpus_of("relaxed", state, Waiting("job", gpus), {"probability": 1, "unit": "nic"})
    return None if chosen is None else [TWO_NICS.gpus.index(gpu) for gpu in chosen]  # type: ignore[attr-defined]


@given(TAKEN, st.integers(2, 12))
def test_a_relaxed_job_takes_free_nics_whole_and_in_order_and_shares_one_only_if_none_is_left(
    there: set[int], gpus: int
) -> None:
    free = [gpu for gpu in range(12) if gpu not in there]
    alone = [gpu for gpu in free if gpu ^ 1 not in there]
    chosen = by_nic(there, gpus)
    if gpus > len(free):
        assert chosen is None
    elif gpus <= len(alone):
        assert chosen == alone[:gpus]
    else:
        others = [gpu for gpu in free if gpu not in alone]
        assert chosen == sorted(alone + others[: gpus - len(alone)])


def test_a_single_gpu_that_needs_no_nic_goes_where_one_is_in_use() -> None:
    assert by_nic({2}, 1) == [3]
    assert by_nic({2, 3}, 1) == [0]
    assert by_nic(set(range(12)), 1) is None


def test_what_a_relaxed_job_takes_is_a_word() -> None:
    with pytest.raises(ValueError, match=r"^option 'unit' of relaxed must be one of gpu, nic, not 'host'$"):
        create("placer", "relaxed", {"unit": "host"})


@pytest.mark.parametrize("value", [-0.1, 1.5, "half", True, float("nan")])
def test_a_probability_that_is_none_is_one_line(value: object) -> None:
    with pytest.raises(ValueError, match=r"^option 'probability' of relaxed must be a number from 0 to 1, not '.*'$"):
        create("placer", "relaxed", {"probability": value})
