"""Groups of ranks: Megatron-LM's, of every kind a partition of all ranks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.imported.workload import Parallelism
from workloads.training.layout import Group, ParallelLayout

SIZES = st.tuples(*(st.sampled_from([1, 2, 3, 4]) for _ in range(4)))


@given(
    SIZES,
    st.sampled_from(["tensor", "context", "data", "pipeline", "gradient", "stage"]),
    st.permutations(["tensor", "context", "data", "pipeline"]),
)
def test_groups_of_a_kind_are_all_ranks_once(sizes: tuple[int, ...], group: Group, order: list[str]) -> None:
    tensor, context, data, pipeline = sizes
    layout = ParallelLayout(tensor * context * data * pipeline, tensor, pipeline, context, order=tuple(order))  # type: ignore[arg-type]
    ranks = [rank for members in layout.groups(group) for rank in members]
    assert sorted(ranks) == list(range(layout.gpus))


@given(st.sampled_from([1, 2, 4]), st.sampled_from([1, 2]), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2]))
def test_ranks_are_those_of_megatron(tensor: int, expert: int, more: int, pipeline: int) -> None:
    gpus = tensor * expert * more * pipeline
    layout, known = ParallelLayout(gpus, tensor, pipeline, expert=expert), Parallelism(gpus, tensor, expert, pipeline)
    pairs = {
        "tensor": "tensor",
        "data": "data",
        "pipeline": "pipeline",
        "expert": "expert",
        "expert-gradient": "data-expert",
    }
    for own, its in pairs.items():
        assert sorted(layout.groups(own)) == sorted(known.groups(its))  # type: ignore[arg-type]


def test_experts_divide_context_and_data_together() -> None:
    layout = ParallelLayout(16, tensor=2, context=2, pipeline=2, expert=4)
    assert layout.groups("expert")[0] == (0, 2, 4, 6)
    assert layout.groups("expert-gradient")[0] == (0,)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"tensor": 3}, "16 GPUs with tensor 3 x pipeline 1 x context 1, expected a multiple of 3 GPUs"),
        ({"expert": 3}, "expert 3 with data 16 x context 1, expected a divisor of 16"),
        ({"tensor": 0}, "tensor is 0, expected at least 1"),
        ({"order": ("tensor", "data")}, "order is tensor, data, expected each of tensor, context, data, pipeline once"),
    ],
)
def test_a_layout_that_cannot_be_is_refused(parts: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ParallelLayout(16, **parts)  # type: ignore[arg-type]
