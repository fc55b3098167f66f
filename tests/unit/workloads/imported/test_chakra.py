"""Chakra traces: read as they are written, totals as a count of their own nodes, damage in one line."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workloads.imported import chakra
from workloads.imported import chakra_wire as wire
from workloads.imported.chakra_wire import AttributeValue, ChakraNode
from workloads.imported.errors import WorkloadFileError
from workloads.imported.workload import totals


def collective(number: int, kind: int, size: int, *after: int, **told: AttributeValue) -> ChakraNode:
    attributes: dict[str, AttributeValue] = {"is_cpu_op": False, "comm_type": kind, "comm_size": size, **told}
    return ChakraNode(number, f"collective {number}", wire.COLLECTIVE, after, 0.001, attributes)


def kernel(number: int, seconds: float, *after: int, cpu: bool = False) -> ChakraNode:
    return ChakraNode(number, f"kernel {number}", wire.COMPUTE, after, seconds, {"is_cpu_op": cpu})


def write(path: Path, nodes: Sequence[ChakraNode]) -> Path:
    path.write_bytes(wire.write_messages([wire.write_version("0.0.4"), *map(wire.write_node, nodes)]))
    return path


STEP = [
    kernel(1, 0.5, cpu=True),
    kernel(2, 0.010, 1),
    ChakraNode(3, "launch", wire.COLLECTIVE, (1,), 0.2, {"is_cpu_op": True}),
    collective(4, 0, 1000, 2, 3),
    kernel(5, 0.020, 2),
    collective(6, 0, 500, 5),
    collective(7, 6, 64, 6),
    kernel(8, 0.005, 4, 7),
]


def test_an_iteration_has_what_gpus_compute_and_the_collectives_that_have_a_size(tmp_path: Path) -> None:
    found = chakra.read(write(tmp_path / "step.0.et", STEP), gpus=4)
    assert found.compute_s == pytest.approx(0.035)
    # The sum as a script over the nodes makes it.
    sizes = [node.attributes["comm_size"] for node in STEP if node.attributes.get("comm_type") == 0]
    assert totals(found) == {
        ("allreduce", "all"): (2, sum(map(float, map(str, sizes)))),
        ("alltoall", "all"): (1, 64.0),
    }
    assert found.left_out == (
        "1 operators of the CPU: it launches what GPUs compute",
        "1 collectives without a size: they launch others",
    )
    assert found.notes[0] == "8 nodes, 4 of them collectives, 3 with a size"


def test_a_folder_has_a_file_per_rank(tmp_path: Path) -> None:
    for rank in range(11):
        write(tmp_path / f"all.{rank}.et", [collective(0, 0, 100)])
    write(tmp_path / "all.10.et", [collective(0, 0, 300)])
    found = chakra.read(tmp_path)
    assert found.parallelism.gpus == 11
    assert totals(found) == {("allreduce", "all"): (1, 100.0)}
    assert found.left_out == ("what 1 of 11 ranks do otherwise: all do what the first does",)


VALUES = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5)


@given(
    st.integers(0, 2**63),
    st.text(max_size=8),
    st.lists(st.integers(0, 2**40), max_size=4, unique=True),
    st.integers(0, 10**9),
    st.dictionaries(st.text(min_size=1, max_size=5), VALUES, max_size=4),
)
def test_a_node_that_is_written_reads_back_the_same(
    number: int, name: str, after: list[int], micros: int, told: dict[str, AttributeValue]
) -> None:
    node = ChakraNode(number, name, wire.COMPUTE, tuple(after), micros * 1e-6, told)
    again = wire.read_node(wire.write_node(node))
    assert (again.id, again.name, again.kind, again.after) == (number, name, wire.COMPUTE, tuple(after))
    assert again.seconds == pytest.approx(node.seconds)
    assert dict(again.attributes) == told


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([], "{file}: no node, expected a Chakra execution trace"),
        ([kernel(1, 0.1), kernel(1, 0.1)], "{file}: two nodes have the id 1, expected an id for each"),
        (
            [collective(1, 0, 100, pg_name="3")],
            "{file}: node 1 is a collective of process group '3', expected group, the ranks that take part",
        ),
        ([collective(1, 0, -5)], "{file}: node 1 moves -5 bytes, expected 0 or more"),
    ],
)
def test_what_is_wrong_names_the_node(tmp_path: Path, nodes: list[ChakraNode], message: str) -> None:
    file = write(tmp_path / "bad.et", nodes)
    with pytest.raises(WorkloadFileError) as refused:
        chakra.read(file, gpus=4)
    assert str(refused.value) == message.format(file=file)


def test_one_file_leaves_the_number_of_gpus_open(tmp_path: Path) -> None:
    file = write(tmp_path / "one.et", STEP)
    with pytest.raises(WorkloadFileError, match="one rank only, expected gpus, the number of GPUs of the job"):
        chakra.read(file)


def test_a_folder_without_traces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkloadFileError, match=r"0 files \*\.et, expected 1 to 65536, one per rank"):
        chakra.read(tmp_path)


@pytest.mark.parametrize("seed", range(500))
def test_a_damaged_trace_is_read_or_refused_in_one_line(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    file = write(tmp_path / "damaged.et", STEP)
    data = bytearray(file.read_bytes())
    for _ in range(draw.randint(1, 6)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    file.write_bytes(bytes(data[: draw.randint(1, len(data))]) if draw.random() < 0.3 else bytes(data))
    try:
        chakra.read(file, gpus=4)
    except WorkloadFileError as error:
        assert str(error).startswith(str(file))
        assert "\n" not in str(error)


def test_dependencies_on_nodes_that_are_not_in_the_file_are_counted(tmp_path: Path) -> None:
    nodes = [kernel(1, 0.5, 77), collective(2, 0, 1000, 1, 78), kernel(3, 0.1, 2, 77)]
    found = chakra.read(write(tmp_path / "t.0.et", nodes), gpus=4)
    assert "3 dependencies on 2 nodes that are not in the file: they do not count" in found.left_out


def test_a_trace_of_which_nothing_that_communicates_can_be_used_is_refused(tmp_path: Path) -> None:
    nodes = [kernel(1, 0.5), ChakraNode(2, "send", wire.SEND, (1,), 0.1, {"comm_size": 100})]
    with pytest.raises(WorkloadFileError, match="none of 1 nodes that communicate can be used"):
        chakra.read(write(tmp_path / "t.0.et", nodes), gpus=4)


def test_sends_and_gathers_count_as_left_out_by_their_seconds(tmp_path: Path) -> None:
    nodes = [collective(1, 0, 1000), collective(2, 3, 50), ChakraNode(3, "s", wire.SEND, (), 0.002, {"comm_size": 9})]
    coverage = chakra.read(write(tmp_path / "t.0.et", nodes), gpus=4).coverage
    assert (coverage.kept, coverage.left_out) == (1, 2)
    assert coverage.share_left_out == pytest.approx(0.75)
