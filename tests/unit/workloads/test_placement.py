"""No GPU is given twice; policies give what their names say; refusals name the job."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.clos import clos96
from workloads.errors import JobError
from workloads.placement import POLICIES, GpuRequest, place

FABRIC = clos96()


def hosts_of(gpus: tuple[str, ...]) -> list[str]:
    return list(dict.fromkeys(FABRIC.host_of_gpu[gpu] for gpu in gpus))


def tors_of(gpus: tuple[str, ...]) -> set[str]:
    return {FABRIC.ports[f"{host}n0p0"].switch for host in hosts_of(gpus)}


@given(st.sampled_from(sorted(POLICIES)), st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_no_gpu_is_given_twice_and_every_job_gets_its_number(policy: str, sizes: list[int]) -> None:
    requests = [GpuRequest(f"job-{index}", size) for index, size in enumerate(sizes)]
    if sum(sizes) > 96:
        with pytest.raises(JobError, match="are free"):
            place(requests, FABRIC, policy)
        return
    placed = place(requests, FABRIC, policy)
    assert [len(placed[request.job]) for request in requests] == sizes
    given_out = [gpu for gpus in placed.values() for gpu in gpus]
    assert len(set(given_out)) == len(given_out)
    assert set(given_out) <= set(FABRIC.gpus)


def test_first_free_fills_host_after_host() -> None:
    placed = place([GpuRequest("a", 12), GpuRequest("b", 4)], FABRIC, "first-free")
    assert hosts_of(placed["a"]) == ["h0", "h1"]
    assert placed["b"] == ("h1g4", "h1g5", "h1g6", "h1g7")


@pytest.mark.parametrize(("gpus", "hosts"), [(48, 6), (16, 4), (8, 4), (2, 2), (12, 6), (96, 12)])
def test_spread_gives_equal_shares_on_hosts_under_different_tors(gpus: int, hosts: int) -> None:
    found = place([GpuRequest("a", gpus)], FABRIC, "spread")["a"]
    shares = [sum(FABRIC.host_of_gpu[gpu] == host for gpu in found) for host in hosts_of(found)]
    assert shares == [gpus // hosts] * hosts
    assert len(tors_of(found)) == min(hosts, 6)


def test_spread_crosses_tors_when_the_hosts_are_half_taken() -> None:
    sizes = (48, 16, 16, 8, 8)
    placed = place([GpuRequest(str(index), size) for index, size in enumerate(sizes)], FABRIC, "spread")
    assert all(len(tors_of(gpus)) > 1 for gpus in placed.values())


def test_spread_takes_whole_nics_before_it_lets_jobs_share_one() -> None:
    taken = GpuRequest("by-hand", 1, ("h0g0",))
    found = place([taken, GpuRequest("spread", 24)], FABRIC, "spread")["spread"]
    assert "h0g1" not in found


def test_a_job_that_fits_on_one_host_only_gets_one() -> None:
    assert hosts_of(place([GpuRequest("a", 1)], FABRIC, "spread")["a"]) == ["h0"]


def test_placement_by_hand_comes_first_and_is_kept_in_order() -> None:
    placed = place([GpuRequest("a", 2), GpuRequest("b", 2, ("h3g0", "h0g0"))], FABRIC, "first-free")
    assert placed == {"a": ("h0g1", "h0g2"), "b": ("h3g0", "h0g0")}


@pytest.mark.parametrize(
    ("requests", "job", "message"),
    [
        ([GpuRequest("big", 97)], "big", "needs 97 GPUs, 96 are free"),
        ([GpuRequest("first", 90), GpuRequest("second", 7)], "second", "needs 7 GPUs, 6 are free"),
        ([GpuRequest("a", 1, ("h99g0",))], "a", "there is no GPU 'h99g0'"),
        ([GpuRequest("a", 2, ("h0g0", "h0g0"))], "a", "GPU 'h0g0' is listed twice"),
        ([GpuRequest("a", 1, ("h0g0",)), GpuRequest("b", 1, ("h0g0",))], "b", "GPU 'h0g0' is taken by job 'a'"),
    ],
)
def test_a_job_that_cannot_be_placed_is_named(requests: list[GpuRequest], job: str, message: str) -> None:
    with pytest.raises(JobError) as caught:
        place(requests, FABRIC, "first-free")
    assert caught.value.job == job
    assert message in caught.value.message


def test_an_unknown_policy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'tight', expected one of: first-free, spread"):
        place([], FABRIC, "tight")
