"""Measured layer times: read from a file, they stand in for the published share of peak."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from workloads.imported.errors import WorkloadFileError
from workloads.training.gpus import GPUS
from workloads.training.layer_times import LayerTimes, read_layer_times
from workloads.training.layout import ParallelLayout
from workloads.training.plan import TrainingPlan
from workloads.training.schedules import Operation, Schedule
from workloads.training.shape_files import shapes
from workloads.training.work import forward_pass, work_of

GIVEN = {
    "gpu": "NVIDIA H200",
    "model": "llama3-8b",
    "precision": "bf16",
    "sequence": 8192,
    "microbatch": 1,
    "tensor": 1,
    "expert": 1,
    "dense_layer": {"forward_s": 0.003, "backward_s": 0.007},
    "output_layer": {"forward_s": 0.002, "backward_s": 0.005},
}
PLAN = TrainingPlan(shapes()["llama3-8b"], GPUS["h100"], ParallelLayout(2, pipeline=2), 8192, 4)


def read(folder: Path, **changes: object) -> LayerTimes:
    path = folder / "times.json"
    path.write_text(json.dumps({key: value for key, value in {**GIVEN, **changes}.items() if value is not None}))
    return read_layer_times(path)


def test_layers_take_as_long_as_measured(tmp_path: Path) -> None:
    plan = replace(PLAN, layer_times=read(tmp_path))
    assert forward_pass(plan, 0).compute_s == pytest.approx(16 * 0.003)
    assert forward_pass(plan, 1).compute_s == pytest.approx(16 * 0.003 + 0.002)
    assert work_of(plan, 1, Operation("backward", 0)).compute_s == pytest.approx(16 * 0.007 + 0.005)


def test_half_of_a_backward_pass_is_the_gradient_of_weights(tmp_path: Path) -> None:
    plan = replace(PLAN, layer_times=read(tmp_path), schedule=Schedule("zero-bubble"))
    for kind in ("backward", "weights"):
        assert work_of(plan, 0, Operation(kind, 0)).compute_s == pytest.approx(16 * 0.0035)


def test_a_plan_says_where_its_compute_times_come_from(tmp_path: Path) -> None:
    assert PLAN.compute_source == "46.4 % of the bf16 peak of H100 SXM, as published"
    measured = replace(PLAN, layer_times=read(tmp_path))
    assert measured.compute_source == "layer times of times.json, measured on NVIDIA H200"


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"model": "llama3-70b"}, "layer times for model llama3-70b, expected those for model llama3-8b"),
        ({"sequence": 4096}, "layer times for sequence 4096, expected those for sequence 8192"),
        ({"tensor": 8}, "layer times for tensor 8, expected those for tensor 1"),
        ({"output_layer": None}, "has no output_layer"),
        ({"dense_layer": None}, "has no dense_layer"),
    ],
)
def test_times_of_something_else_are_refused(tmp_path: Path, changes: dict[str, object], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        replace(PLAN, layer_times=read(tmp_path, **changes))


def test_times_of_whole_sequences_do_not_fit_a_context_group(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="context is 2, expected 1"):
        replace(PLAN, layout=ParallelLayout(2, context=2), layer_times=read(tmp_path))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"gpu": None}, "no gpu"),
        ({"gpu": 3}, "gpu is 3"),
        ({"sequence": 0}, "sequence is 0"),
        ({"microbatch": True}, "microbatch is true"),
        ({"tensor": 1.5}, "tensor is 1.5"),
        ({"dense_layer": 0.003}, "dense_layer is 0.003"),
        ({"dense_layer": {"forward_s": 0.003}}, "no dense_layer.backward_s"),
        ({"output_layer": {"forward_s": -1, "backward_s": 0}}, "output_layer.forward_s is -1"),
        ({"output_layer": {"forward_s": "1", "backward_s": 0}}, 'output_layer.forward_s is "1"'),
        ({"output_layer": {"forward_s": float("nan"), "backward_s": 0}}, "output_layer.forward_s is NaN"),
    ],
)
def test_a_damaged_file_is_refused_with_its_name_and_key(tmp_path: Path, changes: dict[str, object], what: str) -> None:
    with pytest.raises(WorkloadFileError, match=what) as raised:
        read(tmp_path, **changes)
    assert "times.json" in str(raised.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000])
def test_what_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "times.json"
    path.write_text(text)
    with pytest.raises(WorkloadFileError, match=r"not (a )?JSON"):
        read_layer_times(path)


def test_an_absent_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkloadFileError, match="cannot be read"):
        read_layer_times(tmp_path / "none.json")
