"""Shared GPUs on a host: they compute for one job at a time, and everybody's turn comes."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from workloads.iteration.shared_gpus import SharedGpus


class Turns:
    """Who was let go on, in order."""

    def __init__(self) -> None:
        self.table = SharedGpus()
        self.order: list[str] = []

    def ask(self, job: str, *gpus: str) -> None:
        self.table.share_of(job, gpus).ask(lambda: self.order.append(job))


def test_gpus_of_one_job_are_never_waited_for() -> None:
    turns = Turns()
    turns.ask("a", "g0", "g1")
    turns.ask("b", "g2")
    assert turns.order == ["a", "b"]


def test_whoever_asks_first_computes_first_and_gives_back_what_others_wait_for() -> None:
    turns = Turns()
    for job in "abc":
        turns.ask(job, "g0")
    assert turns.order == ["a"]
    turns.table.give_back("a")
    turns.ask("a", "g0")
    turns.table.give_back("b")
    assert turns.order == ["a", "b", "c"]
    turns.table.give_back("c")
    assert turns.order == ["a", "b", "c", "a"]


def test_a_job_gets_all_its_gpus_or_waits_and_nobody_passes_it_on_one_of_them() -> None:
    turns = Turns()
    turns.ask("small", "g0")
    turns.ask("large", "g0", "g1")
    turns.ask("late", "g1")
    turns.ask("other", "g2")
    assert turns.order == ["small", "other"]
    turns.table.give_back("small")
    assert turns.order == ["small", "other", "large"]
    turns.table.give_back("large")
    assert turns.order[-1] == "late"


def test_a_job_that_leaves_holds_nobody_up_whether_it_computed_or_waited() -> None:
    turns = Turns()
    for job in "abc":
        turns.ask(job, "g0")
    turns.table.leave("b")
    turns.table.leave("a")
    assert turns.order == ["a", "c"]


jobs = st.lists(
    st.tuples(st.sets(st.sampled_from("wxyz"), min_size=1), st.integers(1, 5), st.integers(0, 5), st.integers(1, 6)),
    min_size=1,
    max_size=6,
)


@given(jobs=jobs)
@settings(max_examples=200, deadline=None)
def test_no_gpu_computes_for_two_and_every_job_makes_all_its_iterations(
    jobs: list[tuple[set[str], int, int, int]],
) -> None:
    table, busy, left = SharedGpus(), dict[str, int](), [count for *_, count in jobs]
    timers: list[tuple[int, int, Callable[[int], None]]] = []
    order = itertools.count()

    def begin(number: int, now: int) -> None:
        gpus, compute, elsewhere, _ = jobs[number]
        share = table.share_of(str(number), sorted(gpus))

        def end(then: int) -> None:
            for gpu in gpus:
                del busy[gpu]
            left[number] -= 1
            if left[number]:
                heapq.heappush(timers, (then + elsewhere, next(order), lambda at: begin(number, at)))
            share.give_back()

        def go() -> None:
            assert busy.keys().isdisjoint(gpus)
            busy.update(dict.fromkeys(gpus, number))
            heapq.heappush(timers, (clock[0] + compute, next(order), end))

        clock[0] = now
        share.ask(go)

    clock = [0]
    for number in range(len(jobs)):
        begin(number, 0)
    while timers:
        clock[0], _, handler = heapq.heappop(timers)
        handler(clock[0])
    assert not any(left) and not busy
