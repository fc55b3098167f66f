"""Jobs with a parallel layout in the flow engine: bubbles come out, and bytes are those of the layout."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.api import prepare, run_scenario
from testbed.errors import BadInputError
from workloads.analysis import isolated
from workloads.job import Job
from workloads.training.gpus import GPUS
from workloads.training.iteration import Cluster, iteration_alone
from workloads.training.layout import ParallelLayout
from workloads.training.plan import TrainingPlan
from workloads.training.schedules import Schedule
from workloads.training.shape_files import shapes
from workloads.training.traffic import exchanges

FABRIC = {
    "kind": "rail-optimized", "hosts": 4, "gpus_per_host": 8, "nics_per_host": 8, "aggregations": 4,
    "port_rate": "400Gbps", "fabric_rate": "400Gbps",
}  # fmt: skip


@dataclass(frozen=True)
class Made:
    """A run of one job: the job, its mean iteration, and what it lost."""

    job: Job
    summary: dict[str, Any]
    alone_s: float

    @property
    def iteration_s(self) -> float:
        """Mean of those measured."""
        return float(self.summary["iteration_s"]["mean"])


LLAMA = shapes()["llama3-8b"]


def scenario(path: Path, fabric: dict[str, Any] | None = None, **job: Any) -> str:
    given = {
        "fabric": {**FABRIC, **(fabric or {})},
        "jobs": [{"name": "a", "model": "llama3-8b", "gpus": 32, **job}],
        "schedulers": ["ecmp"],
        "channels": 1,
        "measure": {"iterations": 3, "warmup": 1},
    }
    file = path / "scenario.yaml"
    file.write_text(yaml.safe_dump(given))
    return str(file)


def made(path: Path, fabric: dict[str, Any] | None = None, **job: Any) -> Made:
    file = scenario(path, fabric, **job)
    (experiment,) = prepare(file, engine="flow").experiments
    (run,) = run_scenario(file, engine="flow", out=path / "runs").summary["runs"]
    (built,) = experiment.jobs
    return Made(built, run["jobs"][0], isolated(built, experiment.fabric).iteration_s)


FAST = {"port_rate": "400000Gbps", "fabric_rate": "400000Gbps"}
"""Nothing that goes between hosts takes time."""


def test_measured_layer_times_are_found_beside_the_scenario_and_said_in_the_summary(tmp_path: Path) -> None:
    """A file that is twice as slow as the published share: an iteration that waits for nothing takes twice as long."""
    published = made(tmp_path, FAST, gpus=8, sequence=8192)
    assert published.summary["compute_source"] == "46.4 % of the bf16 peak of H100 SXM, as published"
    passes_s, layers = published.job.compute_s / 8, LLAMA.layers
    layer = {"forward_s": 2 * passes_s / 3 / layers, "backward_s": 4 * passes_s / 3 / layers}
    setting = {"precision": "bf16", "sequence": 8192, "microbatch": 1, "tensor": 1, "expert": 1}
    times = {"gpu": "H100", "model": "llama3-8b", **setting, "dense_layer": layer}
    (tmp_path / "times.json").write_text(json.dumps({**times, "output_layer": {"forward_s": 0.0, "backward_s": 0.0}}))
    measured = made(tmp_path, FAST, gpus=8, sequence=8192, layer_times="times.json")
    assert measured.summary["compute_source"] == "layer times of times.json, measured on H100"
    assert measured.iteration_s == pytest.approx(2 * published.iteration_s, rel=0.01)


@pytest.mark.parametrize(
    ("schedule", "value"),
    [
        ("1f1b", Schedule()),
        ({"name": "interleaved", "chunks": 4}, Schedule("interleaved", 4)),
        ("gpipe", Schedule("gpipe")),
        ("zero-bubble", Schedule("zero-bubble")),
    ],
)
def test_a_pipeline_idles_for_its_bubble(schedule: object, value: Schedule, tmp_path: Path) -> None:
    """With nothing between hosts that takes time an iteration is that of the schedule."""
    found = made(tmp_path, FAST, parallel={"tensor": 8, "pipeline": 4}, microbatches=8, schedule=schedule)
    plan = TrainingPlan(LLAMA, GPUS["h100"], ParallelLayout(32, 8, 4), 4096, 8, schedule=value)
    alone = iteration_alone(plan, Cluster(8, 4e14))
    assert alone.pipeline.bubble > 0.05
    assert found.iteration_s == pytest.approx(alone.seconds, rel=0.015)


def test_an_iteration_takes_what_the_closed_form_says(tmp_path: Path) -> None:
    found = made(tmp_path, parallel={"tensor": 8, "pipeline": 4}, microbatches=8)
    assert found.iteration_s == pytest.approx(found.alone_s, rel=0.01)


def test_what_is_sent_between_hosts_is_what_the_layout_says(tmp_path: Path) -> None:
    found = made(tmp_path, parallel={"tensor": 8, "pipeline": 2}, microbatches=4, sharding="none")
    plan = TrainingPlan(LLAMA, GPUS["h100"], ParallelLayout(32, 8, 2), 4096, 4, sharding="none")
    wire = {"allreduce": 2 * (2 - 1) / 2, "point-to-point": 1.0}
    expected = sum(
        16 * sum(wire[each.collective] * each.total for each in exchanges(plan, stage) if each.group != "tensor")
        for stage in (0, 1)
    )
    assert sum(flow.bytes for flow in found.job.flows) == pytest.approx(expected)


def test_sharded_parameters_travel_beside_compute(tmp_path: Path) -> None:
    found = made(tmp_path, sharding="zero-3", microbatches=1)
    assert found.summary["gpu_utilization"] == pytest.approx(1.0, abs=0.01)


def test_tokens_go_to_experts_on_other_hosts(tmp_path: Path) -> None:
    found = made(tmp_path, model="mixtral-8x7b", parallel={"expert": 8, "tensor": 4}, microbatches=2)
    assert any("tokens" in flow.id for flow in found.job.flows)
    assert found.iteration_s == pytest.approx(found.alone_s, rel=0.02)


def test_both_ways_of_dualpipe_hide_what_experts_exchange(tmp_path: Path) -> None:
    job = {"model": "mixtral-8x7b", "microbatches": 8}
    one = made(tmp_path, **job, parallel={"expert": 8, "pipeline": 2, "tensor": 2})
    two = made(tmp_path, **job, parallel={"expert": 8, "pipeline": 2, "tensor": 2}, schedule="dualpipe")
    assert two.summary["gpu_utilization"] > one.summary["gpu_utilization"]


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({"parallel": {"tensor": 3}}, "32 GPUs with tensor 3 x pipeline 1 x context 1, expected a multiple of 3 GPUs"),
        ({"parallel": {"pipeline": 8}}, "stages 0 and 1 share host h0, expected hosts of one stage each"),
        ({"compute": "1s"}, "job 'a' has compute, expected none: it follows from the model and its layout"),
        ({"model": "bert", "microbatches": 4}, "job 'a' has microbatches, expected a model with a parallel layout"),
        ({"precision": "fp8", "accelerator": "a100"}, "A100 SXM 80 GB does not have, expected bf16"),
        (
            {"schedule": "interleaved", "parallel": {"tensor": 8, "pipeline": 4}, "microbatches": 6},
            "expected a multiple of 4",
        ),
        ({"model": {"config": "absent.json"}}, "absent.json: cannot be read"),
        ({"schedule": 5}, "expected a schedule such as 1f1b"),
        ({"microbatches": 1_000_000}, "microbatches is 1000000 with 1 parts of the model, expected at most 65536"),
        (
            {"parallel": {"tensor": 8, "pipeline": 4}, "microbatches": 2_000, "channels": 32},
            "too many messages, expected at most 1000000",
        ),
        ({"layer_times": "absent.json"}, "absent.json: cannot be read (No such file or directory)"),
        ({"model": "bert", "layer_times": "absent.json"}, "job 'a' has layer_times, expected a model with a parallel"),
        ({"model": "llama3-405b"}, "take 1776 GB of a GPU, expected at most 80 GB of H100 SXM"),
    ],
)
def test_what_does_not_fit_is_one_line(job: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(BadInputError) as caught:
        prepare(scenario(tmp_path, **job), engine="flow")
    lines = str(caught.value).splitlines()
    assert len(lines) == 1 and message in lines[0] and "scenario.yaml:" in lines[0]
