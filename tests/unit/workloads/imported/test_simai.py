"""SimAI workloads: totals as a sum over their columns, groups as their header says, and one line for what is wrong."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.imported import simai
from workloads.imported.errors import WorkloadFileError
from workloads.imported.workload import (
    Collective,
    GroupKind,
    Parallelism,
    Stretch,
    condensed,
    totals,
)

HEADER = (
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 1 ga: 1 all_gpus: 8 checkpoints: 0"
)
ROWS = [
    "norm -1 0 BROADCAST 16384 1 NONE 0 1 NONE 0 100",
    "grads -1 5 NONE 0 1 NONE 0 7 REDUCESCATTER 9000 100",
    "attention -1 700 ALLREDUCE 2048 600 ALLREDUCE 1024 500 ALLGATHER_DP_EP 77 100",
    "experts -1 300 ALLTOALL_EP 512 200 ALLTOALL_EP 256 100 NONE 0 100",
]


def write(folder: Path, *rows: str, header: str = HEADER, count: int | None = None) -> Path:
    file = folder / "workload.txt"
    file.write_text("\n".join([header, str(len(rows) if count is None else count), *rows]) + "\n", "utf-8")
    return file


def test_totals_are_the_sums_over_the_columns(tmp_path: Path) -> None:
    file = write(tmp_path, *ROWS)
    found = simai.read(file)
    # Independent of the reader: every third column from the third is compute, the one two behind it bytes.
    table = [line.split() for line in file.read_text("utf-8").splitlines()[2:]]
    assert found.compute_s == pytest.approx(sum(int(row[place]) for row in table for place in (2, 5, 8)) * 1e-9)
    assert sum(size for _, size in totals(found).values()) == sum(int(row[p]) for row in table for p in (4, 7, 10))
    assert totals(found) == {
        ("broadcast", "tensor"): (1, 16384.0),
        ("allreduce", "tensor"): (2, 3072.0),
        ("alltoall", "expert"): (2, 768.0),
        ("all-gather", "data-expert"): (1, 77.0),
        ("reduce-scatter", "data"): (1, 9000.0),
    }


def test_an_iteration_goes_forward_and_back_and_weight_gradients_go_on_in_the_background(tmp_path: Path) -> None:
    found = simai.read(write(tmp_path, ROWS[2], ROWS[3]))
    assert [stretch.collective for stretch in found.stretches] == [
        Collective("allreduce", "tensor", 2048.0),
        Collective("alltoall", "expert", 512.0),
        Collective("alltoall", "expert", 256.0),
        None,
        Collective("allreduce", "tensor", 1024.0),
        Collective("all-gather", "data-expert", 77.0, background=True),
    ]


def test_ranks_are_neighbours_in_tensor_groups_then_in_expert_then_in_data_groups() -> None:
    sizes = Parallelism(16, tensor=2, expert=2, pipeline=2)
    assert sizes.groups("tensor")[:2] == ((0, 1), (2, 3))
    assert sizes.groups("expert")[:2] == ((0, 2), (1, 3))
    assert sizes.groups("data")[:2] == ((0, 2, 4, 6), (1, 3, 5, 7))
    assert sizes.groups("data-expert")[:3] == ((0, 4), (1, 5), (2, 6))
    assert sizes.groups("pipeline")[:2] == ((0, 8), (1, 9))


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_groups_of_every_kind_have_each_rank_once(tensor: int, expert: int, copies: int, pipeline: int) -> None:
    sizes = Parallelism(tensor * expert * copies * pipeline, tensor, expert, pipeline)
    kinds: tuple[GroupKind, ...] = ("tensor", "expert", "data", "data-expert", "pipeline", "all")
    for kind in kinds:
        groups = sizes.groups(kind)
        assert sorted(rank for group in groups for rank in group) == list(range(sizes.gpus))
        assert {len(group) for group in groups} == {sizes.size(kind)}


COLLECTIVES = st.builds(
    Collective,
    st.sampled_from(("allreduce", "all-gather", "alltoall")),
    st.sampled_from(("tensor", "data")),
    st.integers(1, 1000).map(float),
    st.booleans(),
)


@given(
    st.lists(st.builds(Stretch, st.integers(0, 50).map(float), st.none() | COLLECTIVES), max_size=60),
    st.integers(1, 40),
)
def test_fewer_phases_have_the_same_compute_and_bytes(stretches: list[Stretch], most: int) -> None:
    fewer = condensed(tuple(stretches), most)
    sums: list[dict[object, float]] = []
    for those in (stretches, fewer):
        found: dict[object, float] = {"compute": sum(each.compute_s for each in those)}
        for each in those:
            if each.collective is not None:
                key = (each.collective.kind, each.collective.group, each.collective.background)
                found[key] = found.get(key, 0.0) + each.collective.bytes
        sums.append(found)
    assert sums[0] == pytest.approx(sums[1])
    kinds = len({key for key in sums[0] if key != "compute"})
    assert len(fewer) <= max(most, kinds, 1)


@pytest.mark.parametrize(
    ("rows", "header", "count", "message"),
    [
        (
            [],
            "GEMM model: 1",
            None,
            ":1: the workload is 'GEMM', expected HYBRID_TRANSFORMER_FWD_IN_BCKWD or HYBRID_TRANSFORMER",
        ),
        (
            [],
            "HYBRID_TRANSFORMER model_parallel_NPU_group: two",
            None,
            ":1: model_parallel_NPU_group is 'two', expected a whole number",
        ),
        (
            [],
            "HYBRID_TRANSFORMER ep: 2",
            None,
            ":1: no model_parallel_NPU_group, expected the size of tensor-parallel groups",
        ),
        (
            ROWS,
            "HYBRID_TRANSFORMER model_parallel_NPU_group: 2",
            None,
            ":1: the header has no all_gpus, expected gpus, the number of GPUs of the job",
        ),
        (
            ROWS,
            "HYBRID_TRANSFORMER model_parallel_NPU_group: 3 all_gpus: 8",
            None,
            ":1: 8 GPUs with tensor size 3 and pipeline size 1, expected a multiple of 3 GPUs",
        ),
        (ROWS, HEADER, 7, ":2: 7 rows are announced and 4 follow, expected as many as announced"),
        ([ROWS[0], "a b c"], HEADER, None, ":4: 3 columns, expected 12"),
        (
            [ROWS[0].replace("16384", "-1")],
            HEADER,
            None,
            ":3: bytes of the forward is '-1', expected a whole number of at least 0",
        ),
        (
            [ROWS[0].replace("BROADCAST", "GATHER")],
            HEADER,
            None,
            ":3: unknown collective 'GATHER', expected NONE, or ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL, "
            "BROADCAST with _EP or _DP_EP",
        ),
        (
            ROWS,
            HEADER.replace("NPU_group: 2", "NPU_group: 1"),
            None,
            ":3: BROADCAST of 16384 bytes of the forward is of the tensor group, which has one rank, "
            "expected group, the ranks that take part",
        ),
    ],
)
def test_what_is_wrong_or_left_open_names_its_line(
    tmp_path: Path, rows: list[str], header: str, count: int | None, message: str
) -> None:
    file = write(tmp_path, *rows, header=header, count=count)
    with pytest.raises(WorkloadFileError) as refused:
        simai.read(file)
    assert str(refused.value) == f"{file}{message}"


def test_the_job_must_have_as_many_gpus_as_the_header_says(tmp_path: Path) -> None:
    file = write(tmp_path, *ROWS)
    with pytest.raises(
        WorkloadFileError, match="the header says all_gpus: 8 and the job has 16 GPUs, expected the same number"
    ):
        simai.read(file, 16)


def test_a_key_without_a_colon_is_read_and_stages_pass_on_activations(tmp_path: Path) -> None:
    header = "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 pp: 2 vpp: 4 ga: 3 all_gpus: 8 pp_comm 1000"
    found = simai.read(write(tmp_path, ROWS[2].replace("_DP_EP", ""), header=header))
    passed = [
        stretch.collective
        for stretch in found.stretches
        if stretch.collective and stretch.collective.group == "pipeline"
    ]
    assert passed == [
        Collective("point-to-point", "pipeline", 12000.0),
        Collective("point-to-point", "pipeline", 12000.0, returning=True),
    ]


@pytest.mark.parametrize("seed", range(500))
def test_a_damaged_file_is_read_or_refused_in_one_line(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    text = list(write(tmp_path, *ROWS).read_text("utf-8"))
    for _ in range(draw.randint(1, 8)):
        place = draw.randrange(len(text))
        text[place : place + draw.randint(0, 3)] = draw.choice(["", "9", " ", "\n", "-1", "x", "_EP", "1e9", "\x00"])
    file = tmp_path / "workload.txt"
    file.write_text("".join(text), "utf-8")
    try:
        simai.read(file)
    except WorkloadFileError as error:
        assert str(error).startswith(str(file))
        assert "\n" not in str(error)
