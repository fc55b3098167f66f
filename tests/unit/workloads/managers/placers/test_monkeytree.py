"""MonkeyTree: never more fragments under a ToR than allowed, beside a search over all placements."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.clos import clos
from workloads.managers.actions import Migrate, Start
from workloads.managers.cluster_state import empty_cluster
from workloads.managers.interfaces import Submitted
from workloads.managers.jobs import Waiting
from workloads.managers.placers.monkeytree.fragments import Racks, bounded, plan
from workloads.managers.placers.monkeytree.placer import MonkeyTree, racks_of
from workloads.managers.registry import manager

FABRIC = clos(hosts=6, tors=3, aggregations=2, gpus_per_host=4, nics_per_host=1, port_rate=1e11, fabric_rate=1e11)


def holds(racks: Racks) -> bool:
    """Whether every ToR has as few fragments as it must, and no GPU two jobs."""
    return min(racks.free) >= 0 and all(racks.fragments(tor) <= racks.most for tor in range(len(racks.free)))


@st.composite
def clusters(draw: st.DrawFn) -> Racks:
    """Three ToRs of four GPUs with jobs placed by the rule itself, some of which have left again."""
    racks = Racks((4, 4, 4), {}, draw(st.integers(1, 2)))
    for number in range(draw(st.integers(0, 6))):
        where = bounded(racks, draw(st.integers(1, 6)))
        if where is not None:
            racks = racks.having(f"j{number}", where)
    for job in draw(st.sets(st.sampled_from(sorted(racks.jobs)), max_size=3)) if racks.jobs else ():
        racks = racks.without(job)
    return racks


@given(clusters(), st.integers(1, 8))
def test_a_place_is_bounded_and_of_the_right_size(racks: Racks, gpus: int) -> None:
    where = bounded(racks, gpus)
    if where is not None:
        assert sum(where.values()) == gpus and min(where.values()) > 0
        assert holds(racks.having("new", where))


def splits(gpus: int, tors: int = 3) -> Iterator[dict[int, int]]:
    """All ways to put ``gpus`` under the ToRs."""
    for counts in product(range(gpus + 1), repeat=tors):
        if sum(counts) == gpus:
            yield {tor: count for tor, count in enumerate(counts) if count}


def fewest_moved(racks: Racks, gpus: int) -> int | None:
    """GPUs that change ToRs in the best placement of all jobs and the new one, by trying all; None if there is none."""
    names = sorted(racks.jobs)
    total = tuple(4 for _ in racks.free)
    best: int | None = None
    for ways in product(*(splits(sum(racks.jobs[name].values())) for name in names), splits(gpus)):
        tried = Racks(total, {}, racks.most)
        for name, where in zip([*names, "new"], ways, strict=True):
            tried = tried.having(name, where)
        if holds(tried):
            moved = sum(
                max(0, count - racks.jobs[name].get(tor, 0))
                for name, where in zip(names, ways, strict=False)
                for tor, count in where.items()
            )
            best = moved if best is None else min(best, moved)
    return best


@given(clusters().filter(lambda racks: len(racks.jobs) <= 3), st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_a_plan_holds_after_every_move_and_moves_no_less_than_the_best(racks: Racks, gpus: int) -> None:
    found, best = plan(racks, gpus), fewest_moved(racks, gpus)
    if found is None:
        return
    moved, now = 0, racks
    for job, where in found.moves:
        before = racks.jobs[job]
        moved += sum(max(0, count - before.get(tor, 0)) for tor, count in where.items())
        now = now.without(job).having(job, where)
        assert min(now.free) >= 0
    assert holds(now.having("new", found.where))
    assert best is not None and moved >= best
    if best == 0:
        assert bounded(racks, gpus) is None or not found.moves


def test_without_room_under_one_tor_another_job_moves() -> None:
    racks = Racks((2, 2, 0), {"a": {0: 2}, "b": {1: 2}, "c": {2: 4}}, 1)
    assert bounded(racks, 4) == {0: 2, 1: 2}
    full = racks.having("d", {0: 1, 1: 1})
    assert bounded(full, 2) is None
    found = plan(full, 2)
    assert found is not None and len(found.moves) == 1


def test_the_manager_migrates_a_job_so_that_the_next_one_can_start() -> None:
    one_fragment = {"placer": {"fragments": 1}, "policy": {"fragments": 1}}
    monkeytree = manager("monkeytree", "fifo", "monkeytree", options=one_fragment)
    state = empty_cluster(FABRIC, time_s=1.0)
    # 8 GPUs under each ToR: a and b leave 2 under each of the first two, d crosses these, c leaves 3 under the third.
    where = {"a": (0, 5), "b": (8, 5), "c": (16, 5), "d": (6, 1)}
    for name, (first, count) in where.items():
        gpus = FABRIC.gpus[first : first + count] + (FABRIC.gpus[14:15] if name == "d" else ())
        state = state.start(Waiting(name, len(gpus)), gpus)
    asked = Waiting("next", 4)
    assert MonkeyTree(fragments=1).place(state, asked, 4) is None
    actions = monkeytree.decide(state, [asked], Submitted("next"))
    assert [type(action) for action in actions] == [Migrate, Start]
    for action in actions:
        state = state.after(action)
    assert holds(racks_of(state, 1))


@pytest.mark.parametrize("fragments", [0, True, 1.5])
def test_a_wrong_number_of_fragments_is_refused(fragments: object) -> None:
    with pytest.raises(ValueError, match="option 'fragments' of monkeytree must be a whole number of at least 1"):
        MonkeyTree(fragments=fragments)  # type: ignore[arg-type]
