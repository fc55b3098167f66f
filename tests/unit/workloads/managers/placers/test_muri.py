"""Muri-net: the matching says which jobs share a ToR's uplinks."""

from __future__ import annotations

from topologies.clos import clos
from workloads.managers.actions import Start
from workloads.managers.cluster_state import ClusterState, empty_cluster
from workloads.managers.interfaces import Tick
from workloads.managers.jobs import Waiting
from workloads.managers.registry import manager

FABRIC = clos(hosts=16, gpus_per_host=4, nics_per_host=2, tors=8, aggregations=2, port_rate=1e9, fabric_rate=1e9)
"""ToRs of two hosts, 8 GPUs: a job of 12 fills one and needs half of another."""
MURI = manager("muri")


def computing(name: str, gpus: int = 12) -> Waiting:
    return Waiting(name, gpus, compute_s=2.0, communication_s=1.0)


def sending(name: str, gpus: int = 12) -> Waiting:
    return Waiting(name, gpus, compute_s=1.0, communication_s=2.0)


def after(state: ClusterState, *jobs: Waiting) -> ClusterState:
    for action in MURI.decide(state, jobs, Tick()):
        assert isinstance(action, Start)
        state = state.after(action)
    return state


def tors(state: ClusterState, job: str) -> set[str]:
    structure = state.structure
    return {structure.tors[tor] for tor in structure.tor_of_gpu[state.held[job]]}


def sharing(state: ClusterState) -> set[frozenset[str]]:
    """Pairs of jobs that both leave a ToR where both are."""
    crossing = [name for name in state.running if len(tors(state, name)) > 1]
    return {frozenset((a, b)) for a in crossing for b in crossing if a < b and tors(state, a) & tors(state, b)}


def test_jobs_that_interleave_best_share_an_uplink() -> None:
    jobs = (computing("c1"), computing("c2"), sending("s1"), sending("s2"))
    state = after(empty_cluster(FABRIC), *jobs)
    assert len(sharing(state)) == 2
    assert all({name[0] for name in pair} == {"c", "s"} for pair in sharing(state))


def test_a_job_joins_the_running_one_that_it_interleaves_with() -> None:
    state = after(empty_cluster(FABRIC), computing("c1"))
    state = after(state, Waiting("unknown", 12))
    assert sharing(after(state, sending("s1"))) == {frozenset(("c1", "s1"))}


def test_a_job_of_which_nothing_is_known_keeps_to_itself_while_tors_are_free() -> None:
    state = after(empty_cluster(FABRIC), Waiting("a", 12), Waiting("b", 12))
    assert sharing(state) == set()


def test_a_job_with_another_number_of_gpus_is_no_partner() -> None:
    state = after(empty_cluster(FABRIC), computing("c", 12), sending("s", 20))
    assert sharing(state) == set()


def test_an_uplink_that_two_share_is_not_offered_to_a_third() -> None:
    state = after(empty_cluster(FABRIC), computing("c1", 10), sending("s1", 10))
    assert sharing(state) == {frozenset(("c1", "s1"))}
    assert sharing(after(state, sending("s2", 10))) == {frozenset(("c1", "s1"))}


def test_a_job_that_fits_under_one_tor_stays_there() -> None:
    state = after(empty_cluster(FABRIC), computing("c1"), computing("small", 3), computing("tor", 8))
    assert [len(tors(state, name)) for name in ("small", "tor")] == [1, 1]


def test_a_job_that_fills_whole_tors_shares_none() -> None:
    state = after(empty_cluster(FABRIC), computing("c", 16), sending("s", 16))
    assert sharing(state) == set()


def test_a_job_starts_on_what_is_left_when_no_tor_is_whole() -> None:
    state = empty_cluster(FABRIC)
    for number, host in enumerate(list(FABRIC.hosts.values())[::2]):
        state = state.start(Waiting(f"in-the-way-{number}", 1), host.gpus[:1])
    state = after(state, computing("c", 40))
    assert len(state.running["c"].gpus) == 40
