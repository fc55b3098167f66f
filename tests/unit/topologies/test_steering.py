"""Which CPU serves which interface."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.mininet_adapter.steering import cpu_mask, spread


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
