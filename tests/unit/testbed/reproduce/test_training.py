"""Published training runs, and the jobs of today: what is computed, and on what."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from testbed.api import prepare
from testbed.errors import BadInputError
from testbed.progress import Progress
from testbed.reproduce.paper_experiment import PaperRow, Settings
from testbed.reproduce.training import today
from testbed.reproduce.training.published_runs import TOLERANCE, PublishedRun, published_runs
from testbed.reproduce.training.today import FABRICS, HOSTS, PLACEMENTS, SCHEDULERS, Case, rows_of, scenario_of
from testbed.reproduce.training.today_plot import gains
from workloads.training.iteration import iteration_alone

RUNS = {run.label: run for run in published_runs()}
QUICK = [
    "Megatron-LM 1.7B",
    "Megatron-LM 39.1B",
    "Megatron-LM 145.6B",
    "Megatron-LM 175B, 1024 GPUs",
    "MegaScale 175B, 12288 GPUs",
    "Llama 3 405B, 16384 GPUs, 8192 tokens",
    "Llama 3 405B, 16384 GPUs, 131072 tokens",
]


def error(run: PublishedRun) -> float:
    return run.measure(run.plan, iteration_alone(run.plan, run.cluster)) / run.published - 1


def test_there_are_thirty_published_runs() -> None:
    assert len(RUNS) == 30


@pytest.mark.parametrize("label", QUICK)
def test_published_runs_are_computed_within_the_target(label: str) -> None:
    assert abs(error(RUNS[label])) <= TOLERANCE


def test_batches_are_those_of_the_papers() -> None:
    assert RUNS["Megatron-LM 1008B"].plan.batch == 3072
    assert RUNS["MegaScale 175B, 12288 GPUs"].plan.batch == 6144
    assert RUNS["DeepSeek-V3, 2048 GPUs"].plan.batch == 15360
    tokens = RUNS["Llama 3 405B, 16384 GPUs, 8192 tokens"].plan
    assert tokens.batch * tokens.sequence == pytest.approx(16e6, rel=0.05)


def test_models_have_the_size_of_their_name() -> None:
    for label, run in RUNS.items():
        if label.startswith("Megatron-LM") and "," not in label:
            billions = float(label.removeprefix("Megatron-LM ").removesuffix("B"))
            assert run.plan.shape.parameters == pytest.approx(1e9 * billions, rel=0.03)


@pytest.mark.parametrize("fabric", FABRICS)
@pytest.mark.parametrize("placement", PLACEMENTS)
def test_the_jobs_of_today_fit_every_fabric(fabric: str, placement: str, tmp_path: Path) -> None:
    path = tmp_path / "today.yaml"
    path.write_text(yaml.safe_dump(scenario_of(Case(fabric, placement, "ecmp", 1))))
    (experiment,) = prepare(path, engine="flow").experiments
    assert len(experiment.fabric.gpus) == 8 * HOSTS == sum(len(job.gpus) for job in experiment.jobs)


def test_drawn_hosts_are_the_same_for_all_schedulers_and_others_with_another_seed() -> None:
    first, second = (scenario_of(Case("HPN 2:1", "drawn", name, 1))["jobs"] for name in ("ecmp", "crux"))
    assert first == second != scenario_of(Case("HPN 2:1", "drawn", "ecmp", 2))["jobs"]


def test_half_of_the_cables_above_the_tors_is_half(tmp_path: Path) -> None:
    for label, share in (("rails 1:1", 1.0), ("rails 2:1", 0.5), ("HPN 2:1", 0.5), ("no rails 2:1", 0.5)):
        path = tmp_path / "today.yaml"
        path.write_text(yaml.safe_dump(scenario_of(Case(label, "packed", "ecmp", 1))))
        fabric = prepare(path, engine="flow").experiments[0].fabric
        down = sum(link.capacity for link in fabric.links_from["tor0"] if link.kind == "host-tor")
        up = sum(link.capacity for link in fabric.links_from["tor0"] if link.kind == "tor-agg")
        assert up == pytest.approx(share * down), label


def test_a_row_compares_all_schedulers_and_says_who_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = {"alone_points": 1.0, "own_points": 2.0, "others_points": 3.0}
    entry = {"gpu_utilization": 0.9, "loss": loss, "jobs": [{"name": "dense", "loss": loss}]}
    case = next(iter(rows_of(1).values()))
    row = today._row("x", case, dict.fromkeys(case, entry))
    assert set(SCHEDULERS) <= set(row.here) and row.here["gain"] == 0.0
    assert row.note.endswith("dense 5.0")


def test_a_row_that_there_is_not_is_named() -> None:
    with pytest.raises(BadInputError, match="--row railz: no such row"):
        today.reproduce(Settings(cases=0, only=("railz",)), Progress(quiet=True))


def test_the_picture_has_a_bar_for_every_scheduler_but_the_first() -> None:
    pytest.importorskip("matplotlib")
    row = PaperRow("rails, packed", here=dict.fromkeys(SCHEDULERS, 0.8))
    axes = gains([row, row], tuple(SCHEDULERS)).axes[0]
    assert [each.get_label() for each in axes.containers] == list(SCHEDULERS)[1:]
    assert len(axes.patches) == 2 * (len(SCHEDULERS) - 1)
