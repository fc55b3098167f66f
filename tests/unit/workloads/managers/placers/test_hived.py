"""HiveD: buddy cells, virtual clusters, and the guarantee that they keep."""

from __future__ import annotations

import os
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.clos import clos
from topologies.fabric import Fabric
from workloads.managers.actions import Preempt, Start
from workloads.managers.cluster_state import ClusterState, empty_cluster
from workloads.managers.gpu_index import structure_of
from workloads.managers.interfaces import Submitted, Tick
from workloads.managers.jobs import Placement, Waiting
from workloads.managers.ledger import Ledger
from workloads.managers.placers.hived import HiveD
from workloads.managers.placers.hived_cells import cells_of, free_cells
from workloads.managers.placers.hived_quotas import quota_problem
from workloads.managers.registry import manager


def fabric(hosts: int, gpus: int, tors: int) -> Fabric:
    return clos(
        hosts=hosts, gpus_per_host=gpus, nics_per_host=1, tors=tors, aggregations=1, port_rate=1e9, fabric_rate=1e9
    )


FABRIC = fabric(8, 8, 4)
EMPTY = empty_cluster(FABRIC)
CELLS = cells_of(EMPTY.structure)
SMALL = empty_cluster(fabric(4, 4, 2))
SMALL_CELLS = cells_of(SMALL.structure)
TWO_HOSTS = fabric(2, 4, 1)


def put(state: ClusterState, placer: HiveD, job: Waiting) -> ClusterState:
    placement = placer.place(state, job, job.gpus)
    assert placement is not None, f"{job.name} finds no place"
    return state.start(job, placement.gpus, placement.bound)


def hosts(state: ClusterState, *jobs: str) -> set[str]:
    return {FABRIC.host_of_gpu[gpu] for job in jobs for gpu in state.running[job].gpus}


def test_cells_are_gpus_pairs_quads_hosts_tors_and_the_cluster() -> None:
    assert CELLS.levels == ("gpu", "pair", "quad", "host", "tor", "cluster")
    assert [int(sizes[0]) for sizes in CELLS.sizes] == [1, 2, 4, 8, 16, 64]


@pytest.mark.parametrize(
    ("gpus", "levels"),
    [
        (1, ("gpu", "host", "tor", "cluster")),
        (2, ("gpu", "host", "tor", "cluster")),
        (6, ("gpu", "pair", "host", "tor", "cluster")),
        (16, ("gpu", "pair", "quad", "octet", "host", "tor", "cluster")),
    ],
)
def test_inside_hosts_cells_are_powers_of_two(gpus: int, levels: tuple[str, ...]) -> None:
    assert cells_of(structure_of(fabric(2, gpus, 1))).levels == levels


@given(st.sampled_from([(8, 8, 4), (4, 6, 2), (2, 2, 1), (6, 1, 3)]), st.randoms(use_true_random=False))
def test_a_cell_counts_the_gpus_that_are_in_it(shape: tuple[int, int, int], random: Random) -> None:
    cells = cells_of(structure_of(fabric(*shape)))
    marked = np.array([random.random() < 0.4 for _ in cells.cell_of[0]])
    for level, counts in enumerate(cells.counts(marked)):
        assert counts.tolist() == [int(marked[cells.inside((level, cell))].sum()) for cell in range(len(counts))]
        assert len(counts) == len(cells.sizes[level])


def test_a_split_leaves_the_siblings_on_the_free_lists() -> None:
    state = put(EMPTY, HiveD(), Waiting("a", 1))
    lists = free_cells(CELLS, state.free)
    assert {level: len(free) for level, free in lists.items()} == {
        "gpu": 1,
        "pair": 1,
        "quad": 1,
        "host": 1,
        "tor": 3,
        "cluster": 0,
    }


def test_the_lowest_free_cell_is_split() -> None:
    state = put(put(EMPTY, HiveD(), Waiting("a", 1)), HiveD(), Waiting("b", 2))
    assert state.running["b"].gpus == ("h0g2", "h0g3")
    assert put(state, HiveD(), Waiting("c", 1)).running["c"].gpus == ("h0g1",)


def test_free_buddies_are_one_cell_again() -> None:
    state = put(put(EMPTY, HiveD(), Waiting("a", 1)), HiveD(), Waiting("b", 5))
    lists = free_cells(CELLS, state.end("a").end("b").free)
    assert {level: len(free) for level, free in lists.items() if free} == {"cluster": 1}


@pytest.mark.parametrize(
    ("gpus", "tors", "hosts_used"),
    [
        (3, 1, 1),
        (6, 1, 1),
        (8, 1, 1),
        (12, 1, 2),
        (16, 1, 2),
        (24, 2, 3),
        (30, 2, 4),
        (64, 4, 8),
    ],
)
def test_a_job_is_packed_under_its_lowest_common_ancestor(gpus: int, tors: int, hosts_used: int) -> None:
    state = put(EMPTY, HiveD(), Waiting("a", gpus))
    tor_of = state.structure.tor_of_gpu[state.held["a"]]
    assert (len(set(tor_of.tolist())), len(hosts(state, "a"))) == (tors, hosts_used)


def test_what_a_job_leaves_of_its_cell_serves_others() -> None:
    state = put(put(EMPTY, HiveD(), Waiting("a", 3)), HiveD(), Waiting("b", 1))
    assert state.running["b"].gpus == ("h0g3",)


def test_a_job_goes_into_pieces_when_no_cell_is_left() -> None:
    state = EMPTY
    for host in FABRIC.hosts.values():
        state = state.start(Waiting(f"in-the-way-{host.name}", 6), host.gpus[1:7])
    assert put(state, HiveD(), Waiting("a", 16)).free_gpus == 0


def test_sixteen_small_jobs_of_one_virtual_cluster_leave_the_other_its_node() -> None:
    nodes = fabric(2, 16, 2)
    placer = HiveD({"vc1": {"host": 1}, "vc2": {"host": 1}})
    state = empty_cluster(nodes)
    for number in range(16):
        state = put(state, placer, Waiting(f"small-{number}", 1, virtual_cluster="vc1"))
    assert len({nodes.host_of_gpu[gpu] for running in state.running.values() for gpu in running.gpus}) == 1
    assert placer.place(state, Waiting("more", 1, virtual_cluster="vc1"), 1) is None
    assert put(state, placer, Waiting("large", 16, virtual_cluster="vc2")).free_gpus == 0


def test_a_virtual_cluster_cannot_take_what_was_promised_to_another() -> None:
    placer = HiveD({"vc1": {"tor": 1}, "vc2": {"tor": 3}})
    assert placer.place(EMPTY, Waiting("a", 17, virtual_cluster="vc1"), 17) is None
    state = put(EMPTY, placer, Waiting("a", 16, virtual_cluster="vc1"))
    assert put(state, placer, Waiting("b", 48, virtual_cluster="vc2")).free_gpus == 0


def test_a_cell_is_unbound_when_its_last_job_ends() -> None:
    placer = HiveD({"vc1": {"host": 1}, "vc2": {"host": 7}})
    state = put(EMPTY, placer, Waiting("a", 1, virtual_cluster="vc1"))
    assert state.running["a"].bound == ("host:0",)
    assert placer.place(state, Waiting("b", 56, virtual_cluster="vc2"), 56) is not None
    state = put(state.end("a"), placer, Waiting("b", 1, virtual_cluster="vc2"))
    assert state.running["b"].bound == ("host:0",)


def test_a_large_job_takes_new_cells_before_it_breaks_into_used_ones() -> None:
    placer = HiveD({"vc": {"host": 4}})
    state = put(EMPTY, placer, Waiting("small", 1, virtual_cluster="vc"))
    state = put(state, placer, Waiting("large", 16, virtual_cluster="vc"))
    assert hosts(state, "small").isdisjoint(hosts(state, "large"))
    assert len(hosts(state, "large")) == 2


def test_a_host_that_is_away_is_not_bound() -> None:
    placer = HiveD({"vc": {"host": 8}})
    state = EMPTY.leave(["h0", "h1"])
    assert hosts(put(state, placer, Waiting("a", 48, virtual_cluster="vc")), "a") == set(list(FABRIC.hosts)[2:])
    assert placer.place(state, Waiting("a", 56, virtual_cluster="vc"), 56) is None


def test_gpus_of_a_job_placed_by_hand_are_left_alone() -> None:
    placer = HiveD({"vc": {"host": 7}})
    state = EMPTY.start(Waiting("by-hand", 1), ("h0g3",))
    assert "h0" not in hosts(put(state, placer, Waiting("a", 56, virtual_cluster="vc")), "a")


@pytest.mark.parametrize(
    ("quotas", "problem"),
    [
        ({"a": {"tor": 2}, "b": {"tor": 3}}, "virtual clusters have 5 cells of level tor in all, expected at most 4"),
        ({"a": {"tor": 3, "host": 3}}, "virtual clusters have 3 cells of level host in all, expected at most 2"),
        (
            {"a": {"tor": 3, "host": 2, "gpu": 1}},
            "virtual clusters have 1 cells of level gpu in all, expected at most 0",
        ),
        (
            {"a": {"rack": 1}},
            "virtual cluster 'a': there is no level of cells 'rack', expected one of: gpu, pair, quad, "
            "host, tor, cluster",
        ),
        ({"a": {"host": -1}}, "virtual cluster 'a': its quota of level host is -1, expected a whole number of cells"),
        ({"a": {"tor": 3, "host": 1, "quad": 1, "pair": 1, "gpu": 2}}, None),
    ],
)
def test_quotas_are_legal_if_every_cell_of_them_can_be_bound(
    quotas: dict[str, dict[str, int]], problem: str | None
) -> None:
    assert quota_problem(CELLS, quotas) == problem


def test_illegal_quotas_are_told_before_anything_runs() -> None:
    options = {"virtual_clusters": {"a": {"tor": 5}}}
    with pytest.raises(ValueError, match="virtual clusters have 5 cells of level tor in all, expected at most 4"):
        manager("hived", options={"placer": options}).check(EMPTY.structure)
    manager("hived").check(EMPTY.structure)


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (Waiting("j", 8, virtual_cluster="a"), None),
        (Waiting("j", 9, virtual_cluster="a"), "job 'j' asks for 9 GPUs, virtual cluster 'a' has 8"),
        (Waiting("j", 1, virtual_cluster="b"), "job 'j': there is no virtual cluster 'b', expected one of: a"),
    ],
)
def test_a_job_that_its_quota_can_never_hold_is_refused(job: Waiting, reason: str | None) -> None:
    options = {"virtual_clusters": {"a": {"host": 1}}}
    assert manager("hived", options={"placer": options}).refusal(EMPTY.structure, job) == reason


def legal_quotas(random: Random) -> dict[str, dict[str, int]]:
    """Cells dealt out from the top of the tree, to one of three virtual clusters each, until none is left."""
    quotas: dict[str, dict[str, int]] = {name: {} for name in ("a", "b", "c")}
    left, above = 1, 16
    for level, size in reversed([(level, int(SMALL_CELLS.sizes[level][0])) for level in range(5)]):
        left *= above // size
        dealt = random.randint(0, left) if size > 1 else left
        for _ in range(dealt):
            quota = quotas[random.choice("abc")]
            quota[SMALL_CELLS.levels[level]] = quota.get(SMALL_CELLS.levels[level], 0) + 1
        left, above = left - dealt, size
    return {name: quota for name, quota in quotas.items() if quota}


def unbound(state: ClusterState, name: str, quota: dict[str, int]) -> list[str]:
    """Levels of the cells that a virtual cluster has not bound, one entry per cell."""
    bound = {cell for run in state.running.values() if run.job.virtual_cluster == name for cell in run.bound}
    used = [cell.partition(":")[0] for cell in bound]
    return [level for level, count in quota.items() for _ in range(count - used.count(level))]


def started(state: ClusterState, placer: HiveD, name: str, size: int, virtual_cluster: str) -> ClusterState | None:
    job = Waiting(name, size, virtual_cluster=virtual_cluster)
    placement: Placement | None = placer.place(state, job, size)
    return None if placement is None else state.start(job, placement.gpus, placement.bound)


def after_history(placer: HiveD, quotas: dict[str, dict[str, int]], random: Random, steps: int) -> ClusterState:
    state = SMALL
    for step in range(steps):
        if state.running and random.random() < 0.45:
            state = state.end(random.choice(sorted(state.running)))
        else:
            size = random.choice([1, 1, 2, 3, 4, 6, 8])
            state = started(state, placer, f"j{step}", size, random.choice(sorted(quotas))) or state
    return state


def filled(state: ClusterState, placer: HiveD, name: str, quota: dict[str, int]) -> ClusterState:
    """Small jobs on all that the cells bound so far have free: after that a job needs a cell of its own."""
    while True:
        more = started(state, placer, f"filler-{state.free_gpus}", 1, name)
        if more is None or len(unbound(more, name, quota)) < len(unbound(state, name, quota)):
            return state
        state = more


def emptied_after_a_promised_history(seed: int, steps: int) -> ClusterState:
    """Bind every cell that is promised after a random history, then end all jobs; asserts on the way."""
    random = Random(seed)
    quotas = legal_quotas(random)
    assert quota_problem(SMALL_CELLS, quotas) is None
    placer = HiveD(quotas)
    state = after_history(placer, quotas, random, steps)
    for name, quota in quotas.items():
        state = filled(state, placer, name, quota)
    promised = [(level, name) for name, quota in quotas.items() for level in unbound(state, name, quota)]
    random.shuffle(promised)
    for level, name in promised:
        size, before = int(SMALL_CELLS.sizes[SMALL_CELLS.levels.index(level)][0]), unbound(state, name, quotas[name])
        bigger = started(state, placer, f"promised-{state.free_gpus}", size, name)
        assert bigger is not None
        assert sorted([*unbound(bigger, name, quotas[name]), level]) == sorted(before)
        state = bigger
    for job in list(state.running):
        state = state.end(job)
    return state


@settings(max_examples=int(os.environ.get("HIVED_HISTORIES", "300")), deadline=None)
@given(st.integers(0, 10**9))
def test_a_virtual_cluster_gets_its_cells_whatever_happened_before(seed: int) -> None:
    emptied = emptied_after_a_promised_history(seed, steps=20)
    assert free_cells(SMALL_CELLS, emptied.free)["cluster"] == (0,)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 24), min_size=1, max_size=20), st.integers(0, 10**6))
def test_buddies_always_merge_again(sizes: list[int], seed: int) -> None:
    random, state = Random(seed), EMPTY
    for number, size in enumerate(sizes):
        for action in manager("hived").decide(state, [Waiting(f"j{number}", size)], Tick()):
            assert isinstance(action, Start)
            state = state.after(action)
        if random.random() < 0.4 and state.running:
            state = state.end(random.choice(sorted(state.running)))
    for name in sorted(state.running, key=lambda _: random.random()):
        state = state.end(name)
    assert free_cells(CELLS, state.free) == free_cells(CELLS, EMPTY.free)


def guests_between(state: ClusterState, quotas: dict[str, dict[str, int]], random: Random, steps: int) -> ClusterState:
    """A random history of guaranteed and opportunistic jobs under the policy; asserts that who may start does."""
    books = manager("hived", policy="guarantee", options={"placer": {"virtual_clusters": quotas}})
    for step in range(steps):
        if state.running and random.random() < 0.4:
            state = state.end(random.choice(sorted(state.running)))
            continue
        guest = random.random() < 0.5
        job = Waiting(
            f"j{step}", random.choice([1, 2, 4, 8]), virtual_cluster=random.choice(sorted(quotas)), opportunistic=guest
        )
        without = state
        for name, running in state.running.items():
            without = without.end(name) if running.job.opportunistic else without
        promised = not guest and started(without, HiveD(quotas), "probe", job.gpus, job.virtual_cluster) is not None
        for action in books.decide(state, [job], Submitted(job.name)):
            if isinstance(action, Preempt):
                assert state.running[action.job].job.opportunistic and not guest
            state = state.after(action)
        assert not promised or job.name in state.running
    return state


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9))
def test_opportunistic_jobs_never_take_what_a_virtual_cluster_was_promised(seed: int) -> None:
    random = Random(seed)
    quotas = legal_quotas(random)
    state = guests_between(SMALL, quotas, random, steps=25)
    for name, running in list(state.running.items()):
        assert not (running.job.opportunistic and running.bound)
        state = state.end(name)
    assert free_cells(SMALL_CELLS, state.free)["cluster"] == (0,)


def books_with_two_clusters() -> Ledger:
    quotas = {"virtual_clusters": {"a": {"host": 1}, "b": {"host": 1}}}
    return Ledger(manager("hived", policy="guarantee", options={"placer": quotas}), TWO_HOSTS)


def test_an_opportunistic_job_leaves_only_where_no_free_host_would_do() -> None:
    books = books_with_two_clusters()
    books.submit(Waiting("guest", 4, opportunistic=True))
    books.decide(0.0)
    (before,) = (running.gpus for running in books.state.running.values())
    books.submit(Waiting("owner", 4, virtual_cluster="a"))
    assert [type(action).__name__ for action in books.decide(5.0)] == ["Start"]
    assert books.state.running["guest"].gpus == before
    books.submit(Waiting("other", 4, virtual_cluster="b"))
    assert [type(action).__name__ for action in books.decide(6.0)] == ["Preempt", "Start"]
    assert set(books.state.running) == {"owner", "other"}
    assert [job.name for job in books.waiting] == ["guest"]


def test_an_opportunistic_job_that_had_to_leave_finds_another_place_at_once() -> None:
    books = books_with_two_clusters()
    books.submit(Waiting("half", 2, virtual_cluster="a"))
    books.submit(Waiting("guest", 2, opportunistic=True))
    books.submit(Waiting("end", 2, opportunistic=True))
    books.decide(0.0)
    beside = [name for name in ("guest", "end") if books.state.running[name].gpus[0][:2] == "h0"]
    assert beside == ["guest"]
    books.submit(Waiting("rest", 2, virtual_cluster="a"))
    done = books.decide(5.0)
    assert [type(action).__name__ for action in done] == ["Preempt", "Start", "Start"]
    assert books.state.running["rest"].gpus[0][:2] == "h0" and books.state.running["guest"].gpus[0][:2] == "h1"


def test_without_quotas_a_guest_leaves_for_a_place_on_fewer_hosts_and_no_more_guests_leave_than_must() -> None:
    books = Ledger(manager("hived", policy="guarantee"), TWO_HOSTS)
    for name in ("one", "two", "three"):
        books.submit(Waiting(name, 2, opportunistic=True))
    books.decide(0.0)
    books.submit(Waiting("fits", 2))
    assert [type(action).__name__ for action in books.decide(1.0)] == ["Start"]
    books.submit(Waiting("whole", 4))
    done = books.decide(2.0)
    assert sum(isinstance(action, Preempt) for action in done) == 2
    assert len({gpu[:2] for gpu in books.state.running["whole"].gpus}) == 1
