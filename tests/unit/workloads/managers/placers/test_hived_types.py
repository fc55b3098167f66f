"""HiveD with several GPU types: each has its own cells and quotas, and keeps what it promises."""

from __future__ import annotations

from random import Random
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.clos import clos
from workloads.managers.cluster_state import ClusterState, empty_cluster
from workloads.managers.jobs import Waiting
from workloads.managers.placers.hived import HiveD
from workloads.managers.placers.hived_cells import Cells, cells_of
from workloads.managers.placers.hived_types import hierarchies, type_hosts
from workloads.managers.registry import manager

FABRIC: Final = clos(hosts=6, gpus_per_host=4, nics_per_host=1, tors=3, aggregations=1, port_rate=1e9, fabric_rate=1e9)
EMPTY: Final = empty_cluster(FABRIC)
TYPES: Final = {"V100": ["h0", "h2", "h3"], "A100": ["h1", "h4", "h5"]}
QUOTAS: Final = {"a": {"V100": {"host": 2}}, "b": {"V100": {"pair": 2}, "A100": {"host": 3}}}


def typed(quotas: Any = None, types: Any = TYPES) -> HiveD:
    return HiveD(quotas, types)


def job(name: str, gpus: int, virtual_cluster: str = "", gpu_type: str = "", guest: bool = False) -> Waiting:
    return Waiting(name, gpus, virtual_cluster=virtual_cluster, gpu_type=gpu_type, opportunistic=guest)


def put(state: ClusterState, placer: HiveD, each: Waiting) -> ClusterState | None:
    found = placer.place(state, each, each.gpus)
    return None if found is None else state.start(each, found.gpus, found.bound)


def types_of(state: ClusterState, name: str) -> set[str]:
    hosts = {FABRIC.host_of_gpu[gpu] for gpu in state.running[name].gpus}
    return {gpu_type for gpu_type, members in TYPES.items() if hosts & set(members)}


def test_one_type_of_all_hosts_has_the_cells_of_the_fabric() -> None:
    (only,) = hierarchies(EMPTY.structure, ())
    assert only.cells.levels == cells_of(EMPTY.structure).levels
    assert all(
        (one == other).all() for one, other in zip(only.cells.cell_of, cells_of(EMPTY.structure).cell_of, strict=True)
    )


def test_each_type_has_cells_of_its_own_gpus_only() -> None:
    v100, a100 = hierarchies(EMPTY.structure, type_hosts(TYPES))
    assert [int(sizes.max()) for sizes in v100.cells.sizes] == [1, 2, 4, 8, 12]
    assert [len(sizes) for sizes in a100.cells.sizes] == [12, 6, 3, 2, 1]
    assert not set(v100.members.tolist()) & set(a100.members.tolist())


@pytest.mark.parametrize("gpu_type", list(TYPES))
def test_a_job_gets_the_type_that_it_asks_for(gpu_type: str) -> None:
    state = put(EMPTY, typed(), job("one", 8, gpu_type=gpu_type))
    assert state is not None and types_of(state, "one") == {gpu_type}
    assert put(state, typed(), job("two", 8, gpu_type=gpu_type)) is None


def test_a_job_that_takes_any_type_has_all_its_gpus_of_one() -> None:
    state = put(EMPTY, typed(), job("one", 8))
    state = state and put(state, typed(), job("two", 8))
    assert state is not None and (types_of(state, "one"), types_of(state, "two")) == ({"V100"}, {"A100"})
    assert put(state, typed(), job("three", 5)) is None  # 4 GPUs of either type are left
    state = put(state, typed(), job("three", 4))
    assert state is not None and types_of(state, "three") == {"V100"}


def test_the_quota_of_a_type_binds_cells_of_that_type() -> None:
    state = put(EMPTY, typed(QUOTAS), job("one", 2, "b", "V100"))
    assert state is not None and state.running["one"].bound == ("V100/pair:0",)
    state = put(state, typed(QUOTAS), job("two", 4, "b"))
    assert state is not None and types_of(state, "two") == {"A100"}  # a pair is left of V100
    assert put(state, typed(QUOTAS), job("three", 4, "a", "A100")) is None


@pytest.mark.parametrize(
    ("each", "reason"),
    [
        (job("j", 9, "a", "V100"), "job 'j' asks for 9 GPUs, virtual cluster 'a' has 8 of type 'V100'"),
        (job("j", 13, "b"), "job 'j' asks for 13 GPUs, virtual cluster 'b' has 12 of one type"),
        (job("j", 13, "b", guest=True), "job 'j' asks for 13 GPUs, the fabric has 12 of one type"),
        (job("j", 1, "a", "H100"), "job 'j': there is no GPU type 'H100', expected one of: V100, A100"),
        (job("j", 12, "b"), None),
    ],
)
def test_a_job_that_no_type_can_hold_is_refused(each: Waiting, reason: str | None) -> None:
    assert typed(QUOTAS).refusal(EMPTY.structure, each) == reason


def test_a_job_that_asks_for_a_type_is_refused_where_types_are_unknown() -> None:
    each = job("j", 1, gpu_type="V100")
    expected = "job 'j' asks for GPUs of type 'V100', placer 'consolidated' knows no types"
    assert manager("consolidated").refusal(EMPTY.structure, each) == expected
    plain = manager("hived").refusal(EMPTY.structure, each)
    assert plain == "job 'j': there is no GPU type 'V100', the option gpu_types has none"


@pytest.mark.parametrize(
    ("types", "quotas", "problem"),
    [
        ({"V100": ["h0"]}, None, "host 'h1' has no GPU type, expected one of: V100"),
        ({"V100": ["h0"], "A100": ["h0"]}, None, "host 'h0' has GPU types 'V100' and 'A100', expected one"),
        ({"V100": ["x0"]}, None, "GPU type 'V100' names host 'x0', expected hosts of the fabric such as h0"),
        ({"V100": []}, None, "GPU type 'V100' has no hosts, expected at least one"),
        (TYPES, {"a": {"A100": {"host": 4}}}, "GPU type 'A100': virtual clusters have 4 cells of level host in all"),
        (TYPES, {"a": {"host": 1}}, "virtual cluster 'a' has quotas of 'host', expected of GPU types: V100, A100"),
        (TYPES, {"a": {"V100": 2}}, "virtual cluster 'a' has quotas of 'V100', expected of GPU types: V100, A100"),
    ],
)
def test_wrong_types_and_quotas_are_told_before_anything_runs(types: Any, quotas: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        typed(quotas, types).check(EMPTY.structure)


def legal_quotas(random: Random) -> dict[str, dict[str, dict[str, int]]]:
    """Hosts, pairs and GPUs of each type, dealt out to two virtual clusters until none is left."""
    quotas: dict[str, dict[str, dict[str, int]]] = {"a": {}, "b": {}}
    for gpu_type, hosts in TYPES.items():
        left, parts = len(hosts), {"host": 2, "pair": 2, "gpu": 0}
        for level, split in parts.items():
            dealt = random.randint(0, left) if split else left
            for _ in range(dealt):
                levels = quotas[random.choice("ab")].setdefault(gpu_type, {})
                levels[level] = levels.get(level, 0) + 1
            left = (left - dealt) * split
    return {name: quota for name, quota in quotas.items() if quota}


def unbound(state: ClusterState, name: str, gpu_type: str, quota: dict[str, int]) -> list[str]:
    """Levels of the cells of a type that a virtual cluster has not bound, one entry per cell."""
    bound = {cell for run in state.running.values() if run.job.virtual_cluster == name for cell in run.bound}
    used = [cell.partition("/")[2].partition(":")[0] for cell in bound if cell.startswith(f"{gpu_type}/")]
    return [level for level, count in quota.items() for _ in range(count - used.count(level))]


def filled(state: ClusterState, placer: HiveD, name: str, gpu_type: str, quota: dict[str, int]) -> ClusterState:
    """Small jobs on all that the cells bound so far have free: after that a job needs a cell of its own."""
    while True:
        more = put(state, placer, job(f"filler-{state.free_gpus}", 1, name, gpu_type))
        if more is None or len(unbound(more, name, gpu_type, quota)) < len(unbound(state, name, gpu_type, quota)):
            return state
        state = more


def size_of(cells: Cells, level: str) -> int:
    return int(cells.sizes[cells.levels.index(level)][0])


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**9))
def test_every_cell_of_every_type_can_be_bound_whatever_happened_before(seed: int) -> None:
    random, state = Random(seed), EMPTY
    quotas = legal_quotas(random)
    placer = typed(quotas)
    placer.check(EMPTY.structure)
    for step in range(25):
        if state.running and random.random() < 0.45:
            state = state.end(random.choice(sorted(state.running)))
        else:
            wanted = random.choice(["", *TYPES])
            each = job(f"j{step}", random.choice([1, 1, 2, 3, 4, 6, 8]), random.choice(sorted(quotas)), wanted)
            state = put(state, placer, each) or state
    promised = []
    for name, by_type in quotas.items():
        for gpu_type, quota in by_type.items():
            state = filled(state, placer, name, gpu_type, quota)
            promised += [(level, name, gpu_type) for level in unbound(state, name, gpu_type, quota)]
    random.shuffle(promised)
    for level, name, gpu_type in promised:
        before = unbound(state, name, gpu_type, quotas[name][gpu_type])
        each = job(f"promised-{state.free_gpus}", size_of(cells_of(EMPTY.structure), level), name, gpu_type)
        bigger = put(state, placer, each)
        assert bigger is not None and types_of(bigger, each.name) == {gpu_type}
        assert sorted([*unbound(bigger, name, gpu_type, quotas[name][gpu_type]), level]) == sorted(before)
        state = bigger
