"""Phases of a graph: they keep what an operator waits for, and say where a sequence of phases cannot."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from workloads.imported.chakra import sequence_s
from workloads.imported.graph import Operator, Stretch, length_s, ordered, stretches


def compute(number: int, seconds: float, *after: int) -> Operator:
    return Operator(number, seconds, after=after)


def send(number: int, seconds: float, *after: int) -> Operator:
    return Operator(number, seconds, True, after)


@st.composite
def graphs(draw: st.DrawFn) -> list[Operator]:
    """Operators in any order of their ids, each after some that were drawn before it."""
    count = draw(st.integers(1, 12))
    drawn = []
    for number in range(count):
        after = draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else set()
        seconds = float(draw(st.integers(0, 5)))
        drawn.append(Operator(number, seconds, draw(st.booleans()), tuple(sorted(after))))
    return drawn


def test_compute_before_a_collective_comes_first_and_what_does_not_wait_for_it_runs_beside_it() -> None:
    graph = [compute(0, 1.0), send(1, 5.0, 0), compute(2, 2.0, 0), compute(3, 4.0, 1, 2)]
    assert stretches(graph) == (Stretch(1.0, 2.0, 1), Stretch(4.0, 0.0, None))
    # Nothing waits for the last collective but compute 3: compute 2 goes on beside it.
    assert length_s(graph) == sequence_s(stretches(graph), {1: 5.0}) == 10.0


def test_gradients_that_only_the_optimiser_waits_for_go_on_in_the_background() -> None:
    graph = [
        compute(0, 1.0),
        send(1, 3.0, 0),
        compute(2, 1.0, 0),
        send(3, 3.0, 2),
        compute(4, 1.0, 2),
        compute(5, 1.0, 1, 3, 4),
    ]
    first, second, last = stretches(graph)
    assert (first.background, second.background) == (True, False)
    assert (first.before_s, first.beside_s, second.beside_s, last.before_s) == (1.0, 1.0, 1.0, 1.0)


def test_a_chain_is_kept_as_it_is() -> None:
    graph = [compute(0, 1.0), send(1, 2.0, 0), compute(2, 3.0, 1), send(3, 4.0, 2)]
    assert stretches(graph) == (Stretch(1.0, 0.0, 1), Stretch(3.0, 0.0, 3))
    assert sequence_s(stretches(graph), {1: 2.0, 3: 4.0}) == length_s(graph) == 10.0


@given(graphs())
def test_no_compute_and_no_communication_is_lost(graph: list[Operator]) -> None:
    in_order, dropped = ordered(graph)
    parts = stretches(in_order)
    assert dropped == 0
    assert sum(part.before_s + part.beside_s for part in parts) == sum(
        each.seconds for each in graph if not each.communicates
    )
    senders = [part.communication for part in parts if part.communication is not None]
    assert sorted(senders) == [each.id for each in graph if each.communicates]


@given(graphs(), st.randoms(use_true_random=False))
def test_an_operator_comes_after_all_it_waits_for_in_whatever_order_it_is_given(
    graph: list[Operator], draw: st.DrawFn
) -> None:
    mixed = list(graph)
    draw.shuffle(mixed)  # type: ignore[attr-defined]
    in_order, _ = ordered(mixed)
    seen: set[int] = set()
    for operator in in_order:
        assert set(operator.after) <= seen
        seen.add(operator.id)
    assert len(seen) == len(graph)


def test_of_a_circle_the_one_that_is_given_first_goes_first() -> None:
    in_order, dropped = ordered([compute(7, 1.0, 8), compute(8, 1.0, 7), compute(9, 1.0, 8)])
    assert [operator.id for operator in in_order] == [7, 8, 9]
    assert dropped == 1
    assert in_order[0].after == ()
