"""Which CPU serves which interface."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.mininet_adapter.steering import by_switch, cpu_mask, divide, spread


def test_interfaces_take_turns_with_the_cpus_this_process_may_use() -> None:
    assert spread(["a", "b", "c"], {5, 2}) == {"a": 2, "b": 5, "c": 2}
    assert spread(["a"], set()) == {}


@pytest.mark.parametrize(
    ("cpu", "mask"), [(0, "00000001"), (1, "00000002"), (31, "80000000"), (32, "00000001,00000000")]
)
def test_a_mask_is_words_of_32_bits(cpu: int, mask: str) -> None:
    assert cpu_mask(cpu) == mask


@given(st.integers(0, 8191))
def test_a_mask_names_its_cpu_alone(cpu: int) -> None:
    assert int(cpu_mask(cpu).replace(",", ""), 16) == 1 << cpu


@pytest.mark.parametrize(
    ("cpus", "divided"),
    [({0}, ((0,), (0,))), ({0, 1}, ((1,), (0,))), ({4, 2, 9}, ((4, 9), (2,))), ({0, 1, 2, 3}, ((2, 3), (0, 1)))],
)
def test_workers_keep_off_the_cpus_that_forward_where_there_are_two(
    cpus: set[int], divided: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    assert divide(cpus) == divided


def test_all_interfaces_of_a_switch_and_at_the_far_ends_of_its_cables_have_one_cpu() -> None:
    assert by_switch({"tor0-eth1": 0, "h0-eth0": 0, "tor1-eth1": 1, "tor2-eth1": 2}, (2, 3)) == {
        "tor0-eth1": 2,
        "h0-eth0": 2,
        "tor1-eth1": 3,
        "tor2-eth1": 2,
    }
