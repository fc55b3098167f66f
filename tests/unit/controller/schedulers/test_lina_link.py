"""Lina's link: 100 MB/s, an allreduce of 300 MB at 0 s and an all-to-all of 60 MB at 1 s."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lina_link import Operation, ends_by_fair_sharing, ends_in_one_queue, ends_of_micro_ops

MB = Fraction(10**6)
RATE = 100 * MB
EXAMPLE = [
    Operation("gradients", "allreduce", 300 * MB, Fraction(0)),
    Operation("tokens", "all-to-all", 60 * MB, Fraction(1)),
]


def test_fair_sharing_ends_the_all_to_all_at_2_2_s() -> None:
    assert ends_by_fair_sharing(EXAMPLE, RATE) == {"tokens": Fraction("2.2"), "gradients": Fraction("3.6")}


def test_one_queue_ends_the_all_to_all_at_3_6_s() -> None:
    assert ends_in_one_queue(EXAMPLE, RATE) == {"gradients": Fraction(3), "tokens": Fraction("3.6")}


def test_micro_ops_with_the_all_to_all_first_end_it_at_1_8_s() -> None:
    assert ends_of_micro_ops(EXAMPLE, RATE, micro_op=30 * MB) == {
        "tokens": Fraction("1.8"),
        "gradients": Fraction("3.6"),
    }


def test_floats_come_out_alike() -> None:
    floats = [Operation(one.name, one.kind, float(one.bytes), float(one.ready_s)) for one in EXAMPLE]
    assert ends_by_fair_sharing(floats, 100e6)["tokens"] == pytest.approx(2.2)
    assert ends_in_one_queue(floats, 100e6)["tokens"] == pytest.approx(3.6)
    assert ends_of_micro_ops(floats, 100e6)["tokens"] == pytest.approx(1.8)


def test_smaller_micro_ops_let_the_all_to_all_start_earlier() -> None:
    ends = [ends_of_micro_ops(EXAMPLE, RATE, micro_op=size * MB)["tokens"] for size in (300, 30, 10)]
    assert ends == [Fraction("3.6"), Fraction("1.8"), Fraction("1.6")]


def test_the_last_micro_op_is_what_is_left() -> None:
    only = [Operation("gradients", "allreduce", 70 * MB)]
    assert ends_of_micro_ops(only, RATE, micro_op=30 * MB) == {"gradients": Fraction("0.7")}


def test_a_micro_op_needs_bytes() -> None:
    with pytest.raises(ValueError, match="more than 0 bytes, not 0"):
        ends_of_micro_ops(EXAMPLE, RATE, micro_op=0)


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["allreduce", "all-to-all"]), st.integers(1, 200), st.integers(0, 5)),
    min_size=1,
    max_size=5,
).map(lambda rows: [Operation(str(n), kind, size * MB, Fraction(at)) for n, (kind, size, at) in enumerate(rows)])  # type: ignore[arg-type]


@given(OPERATIONS)
def test_whatever_the_order_the_link_is_done_at_the_same_time(operations: list[Operation]) -> None:
    ends = [
        ends_by_fair_sharing(operations, RATE),
        ends_in_one_queue(operations, RATE),
        ends_of_micro_ops(operations, RATE, micro_op=30 * MB),
    ]
    assert [set(found) for found in ends] == [{operation.name for operation in operations}] * 3
    assert len({max(found.values()) for found in ends}) == 1
