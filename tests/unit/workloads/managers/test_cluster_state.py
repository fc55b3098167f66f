"""The state of a cluster: what changes hands, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.clos import clos
from topologies.double_sided import double_sided
from workloads.managers.actions import Action, Loan, Migrate, Pack, Preempt, Reclaim, Requeue, Resize, Start
from workloads.managers.cluster_state import ClusterState, empty_cluster
from workloads.managers.gpu_index import structure_of
from workloads.managers.jobs import Waiting

FABRIC = clos(hosts=4, gpus_per_host=4, nics_per_host=2, tors=2, aggregations=2, port_rate=1e9, fabric_rate=1e9)
EMPTY = empty_cluster(FABRIC)
A, B = Waiting("a", 2), Waiting("b", 3)


def consistent(state: ClusterState) -> bool:
    held = {gpu for running in state.running.values() for gpu in running.gpus}
    present = [gpu for gpu in FABRIC.gpus if FABRIC.host_of_gpu[gpu] not in state.absent]
    free = [gpu for host in FABRIC.hosts for gpu in state.free_on(host)]
    return (
        free == [gpu for gpu in present if gpu not in held]
        and state.free_gpus == len(free)
        and state.free_by_host.tolist() == [len(state.free_on(host)) for host in FABRIC.hosts]
    )


def test_hosts_lie_under_their_tors_in_order() -> None:
    structure = structure_of(FABRIC)
    assert [structure.tors[tor] for tor in structure.tor_of_host] == ["tor0", "tor0", "tor1", "tor1"]
    assert structure.gpus_of_tor.tolist() == [8, 8]
    assert structure.gpus == FABRIC.gpus


def test_a_dual_homed_host_is_under_the_tor_of_its_first_port() -> None:
    fabric = double_sided(hosts=6, gpus_per_host=2, nics_per_host=2, tors=4, aggregations=2, cores=2)
    structure = structure_of(fabric)
    assert [structure.tors[tor] for tor in structure.tor_of_host] == ["tor0"] * 3 + ["tor2"] * 3


def test_a_ring_stays_under_a_tor_before_it_goes_on() -> None:
    structure = structure_of(FABRIC)
    chosen = structure.indices(["h3g1", "h0g3", "h2g0", "h0g0"])
    assert structure.in_ring(chosen) == ("h0g0", "h0g3", "h2g0", "h3g1")


def test_what_starts_is_taken_and_what_ends_is_free_again() -> None:
    state = EMPTY.start(A, ("h0g0", "h0g1"))
    assert state.free_on("h0") == ("h0g2", "h0g3")
    assert consistent(state)
    assert state.end("a").free.tolist() == EMPTY.free.tolist()


def test_a_state_is_never_changed_in_place() -> None:
    state = EMPTY.start(A, ("h0g0", "h0g1"))
    assert EMPTY.free_gpus == 16
    with pytest.raises(ValueError, match="read-only"):
        state.free[0] = True


@pytest.mark.parametrize(
    ("job", "gpus", "message"),
    [
        (A, ("h1g0", "h1g1"), "job 'a' runs already"),
        (B, ("h1g0", "h0g1", "h1g1"), "job 'b': GPU 'h0g1' is not free"),
        (B, ("h1g0", "h1g0", "h1g1"), "job 'b': a GPU is listed twice"),
        (B, ("h9g0",), "there is no GPU 'h9g0' in fabric clos"),
    ],
)
def test_a_start_that_cannot_be_names_the_job_or_the_gpu(job: Waiting, gpus: tuple[str, ...], message: str) -> None:
    state = EMPTY.start(A, ("h0g0", "h0g1"))
    with pytest.raises(ValueError, match=message):
        state.start(job, gpus)


def test_a_job_that_does_not_run_cannot_end() -> None:
    with pytest.raises(ValueError, match="job 'a' does not run"):
        EMPTY.end("a")


def test_a_host_leaves_with_its_gpus_and_comes_back_with_them() -> None:
    state = EMPTY.leave(["h1"])
    assert state.free_on("h1") == ()
    assert consistent(state)
    with pytest.raises(ValueError, match="'h1g0' is not free"):
        state.start(Waiting("a", 1), ("h1g0",))
    assert consistent(state.join(["h1", "h2"]))
    assert state.join(["h1"]).free_gpus == 16


def test_a_host_with_a_job_cannot_leave() -> None:
    with pytest.raises(ValueError, match="host 'h0' cannot leave: a job runs on it"):
        EMPTY.start(A, ("h0g0", "h0g1")).leave(["h1", "h0"])


def test_an_unknown_host_cannot_leave() -> None:
    with pytest.raises(ValueError, match="there is no host 'h9' in fabric clos"):
        EMPTY.leave(["h9"])


@pytest.mark.parametrize(
    ("action", "free"),
    [
        (Preempt("a", 1.0, "fair share"), 16),
        (Resize("a", ("h0g0",), 1.0, "shrink"), 15),
        (Migrate("a", ("h2g0", "h2g1"), 1.0, "defragment"), 14),
        (Start(B, ("h1g0", "h1g1", "h1g2"), 1.0, "its turn"), 11),
        (Pack((A, B), ("h0g0", "h0g1"), 1.0, "overload"), 14),
        (Reclaim(("h1",), 1.0, "peak of inference"), 10),
        (Loan(("h1",), 1.0, "night"), 14),
        (Requeue("b", 120.0, 1.0, "no room"), 14),
    ],
)
def test_every_action_has_its_effect(action: Action, free: int) -> None:
    state = EMPTY.start(A, ("h0g0", "h0g1")).after(action)
    assert state.free_gpus == free


def test_packed_jobs_free_their_gpus_when_the_last_of_them_ends() -> None:
    state = EMPTY.start(A, ("h0g0", "h0g1")).after(Pack((A, B), ("h0g0", "h0g1"), 1.0, "overload"))
    assert state.running["a"].share_gpus_with == ("b",)
    assert consistent(state)
    assert state.end("a").free_gpus == 14
    assert state.end("a").end("b").free_gpus == 16


def test_only_jobs_on_a_host_are_named() -> None:
    state = EMPTY.start(A, ("h0g0", "h1g0")).start(B, ("h2g0", "h2g1", "h2g2"))
    assert state.jobs_on(["h1", "h3"]) == ("a",)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 7)), max_size=25))
def test_the_counts_agree_with_the_gpus_after_any_history(steps: list[tuple[str, int]]) -> None:
    state = EMPTY
    for name, size in steps:
        if name in state.running:
            state = state.end(name)
        elif size <= state.free_gpus:
            free = [gpu for host in FABRIC.hosts for gpu in state.free_on(host)]
            state = state.start(Waiting(name, size), tuple(free[-size:]))
        assert consistent(state)
