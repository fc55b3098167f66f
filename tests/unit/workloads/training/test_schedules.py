"""Pipeline schedules: every operation once, in an order that can be; bubbles come out as published."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.training.schedules import Operation, Schedule, after, before
from workloads.training.timeline import timeline

TIMES = {"forward": 1.0, "backward": 2.0, "weights": 1.0}
SIZES = st.tuples(st.integers(1, 6).map(lambda half: 2 * half), st.integers(1, 4))
"""Stages, and how many times as many microbatches."""


def unit(_stage: int, operation: Operation) -> float:
    return TIMES[operation.kind]


def third(_stage: int, _operation: Operation) -> float:
    """Forward pass, gradient of inputs and gradient of weights take equally long."""
    return 1.0


@given(SIZES, st.sampled_from([Schedule(), Schedule("gpipe"), Schedule("interleaved", 3), Schedule("zero-bubble")]))
def test_every_stage_does_everything_once(sizes: tuple[int, int], schedule: Schedule) -> None:
    stages, times = sizes
    kinds = ("forward", "backward", "weights") if schedule.splits_backward else ("forward", "backward")
    wanted = Counter(
        Operation(kind, microbatch, chunk)  # type: ignore[arg-type]
        for kind in kinds
        for microbatch in range(stages * times)
        for chunk in range(schedule.chunks)
    )
    for order in schedule.orders(stages, stages * times):
        assert Counter(order) == wanted


@given(SIZES, st.sampled_from(["1f1b", "gpipe"]))
def test_the_bubble_is_that_of_the_stages_over_the_microbatches(sizes: tuple[int, int], name: str) -> None:
    """(p - 1) / m: Narayanan et al., SC'21, section 2.2.1."""
    stages, times = sizes
    found = timeline(Schedule(name), stages, stages * times, unit)
    assert found.bubble == pytest.approx((stages - 1) / (stages * times))


@given(SIZES, st.integers(2, 5))
def test_interleaving_divides_the_bubble_by_the_chunks(sizes: tuple[int, int], chunks: int) -> None:
    """(p - 1) / (m v): the same, section 2.2.2."""
    stages, times = sizes
    found = timeline(Schedule("interleaved", chunks), stages, stages * times, lambda s, o: unit(s, o) / chunks)
    assert found.bubble == pytest.approx((stages - 1) / (stages * times) / chunks)


@given(SIZES)
def test_a_zero_bubble_schedule_leaves_a_third_of_the_bubble(sizes: tuple[int, int]) -> None:
    """ZB-H1: (p - 1) (T_F + T_B - T_W) of the work 3 m (Qi et al., ICLR 2024, table 2)."""
    stages, times = sizes
    found = timeline(Schedule("zero-bubble"), stages, stages * times, third)
    assert found.bubble == pytest.approx((stages - 1) / (3 * stages * times))


@given(SIZES)
def test_dualpipe_leaves_less_than_zero_bubble(sizes: tuple[int, int]) -> None:
    stages, times = sizes
    found = timeline(Schedule("dualpipe", 2), stages, 2 * stages * times, third)
    other = timeline(Schedule("zero-bubble"), stages, 2 * stages * times, third)
    assert found.bubble <= other.bubble + 1e-9
    assert min(found.busy_s) == max(found.busy_s) == 3 * 2 * stages * times


@given(SIZES, st.integers(0, 3))
def test_one_forward_one_backward_holds_no_more_microbatches_than_stages_follow(
    sizes: tuple[int, int], more: int
) -> None:
    stages, times = sizes
    for stage, order in enumerate(Schedule().orders(stages, stages * times + more)):
        held = most = 0
        for each in order:
            held += 1 if each.kind == "forward" else -1
            most = max(most, held)
        assert most <= stages - stage


@pytest.mark.parametrize(
    ("schedule", "stages", "microbatches", "message"),
    [
        (Schedule("interleaved", 2), 4, 6, "microbatches is 6 with 4 stages, expected a multiple of 4"),
        (Schedule("dualpipe", 2), 4, 7, "microbatches is 7, expected an even number"),
        (Schedule("dualpipe", 2), 3, 8, "pipeline is 3, expected an even number"),
    ],
)
def test_what_a_schedule_cannot_divide_is_refused(
    schedule: Schedule, stages: int, microbatches: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        schedule.orders(stages, microbatches)


@pytest.mark.parametrize(
    ("name", "chunks", "message"),
    [
        ("2f2b", 1, "schedule is '2f2b', expected one of: 1f1b, gpipe, interleaved, zero-bubble, dualpipe"),
        ("interleaved", 1, "chunks is 1, expected at least 2"),
        ("1f1b", 2, "chunks is 2, expected 1"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused(name: str, chunks: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Schedule(name, chunks)


@given(st.integers(1, 6), st.sampled_from([Schedule(), Schedule("interleaved", 3), Schedule("dualpipe", 2)]))
def test_what_waits_for_an_operation_is_what_it_comes_before(half: int, schedule: Schedule) -> None:
    stages, chunks, two_way = 2 * half, schedule.chunks, schedule.two_way
    for stage, order in enumerate(schedule.orders(stages, 2 * stages)):
        for operation in order:
            needed = before(operation, stage, stages, chunks, two_way)
            if needed is not None and needed[0] != stage:
                assert after(needed[1], needed[0], stages, chunks, two_way) == (stage, operation)
            waiting = after(operation, stage, stages, chunks, two_way)
            if waiting is not None:
                assert before(waiting[1], waiting[0], stages, chunks, two_way) == (stage, operation)
