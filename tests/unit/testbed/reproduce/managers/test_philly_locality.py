"""Locality, with rates computed in place of packets: what the three scenarios come to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from testbed.api import run_scenario
from testbed.progress import Progress
from testbed.reproduce.kept_runs import Beside, Task
from testbed.reproduce.managers.philly_locality import STEPS, reproduce
from testbed.reproduce.paper_experiment import PaperRow, Settings


def computed(task: Task, out: Path, beside: Beside) -> tuple[Path, Mapping[str, Any]]:
    overrides = [*task.treatment.overrides, "measure.iterations=3", "measure.warmup=1"]
    result = run_scenario(task.scenario, engine="flow", overrides=overrides, seed=task.seed, out=out)
    return result.directory, result.summary


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, PaperRow]:
    settings = Settings(cases=0, seeds=1, out=tmp_path_factory.mktemp("locality"))
    return {row.label: row for row in reproduce(settings, Progress(quiet=True), computed)}


def test_the_job_on_two_servers_has_the_utilisation_that_it_is_calibrated_to(rows: Mapping[str, PaperRow]) -> None:
    assert rows["16 GPUs on 2 servers"].here["utilization"] == pytest.approx(0.4366, abs=0.005)


def test_the_same_job_on_eight_servers_pays_for_the_longer_ring_and_more_beside_others(
    rows: Mapping[str, PaperRow],
) -> None:
    # A ring of 8 hosts sends 2 * 7/8 S by a NIC, one of 2 hosts S: 1 / (1 + 1.75 * (1/0.4366 - 1)).
    assert rows["16 GPUs on 8 servers"].here["utilization"] == pytest.approx(0.307, abs=0.005)
    assert rows["16 GPUs on 8 servers, four jobs"].here["utilization"] < 0.2


def test_two_servers_of_two_gpus_are_slower_than_four_of_one_for_every_model(rows: Mapping[str, PaperRow]) -> None:
    for model, (one, two, four) in STEPS.items():
        row = rows[f"{model}, 22 against 1111"]
        assert row.paper["slow_down"] == pytest.approx(two / four)
        # Two GPUs share one NIC: what "1111" spends on the network takes twice as long.
        assert row.here["slow_down"] == pytest.approx(2 - one / four, rel=0.01)


def test_a_split_costs_more_the_more_a_model_sends_for_its_compute(rows: Mapping[str, PaperRow]) -> None:
    slow = {model: rows[f"split 3 + 1, {model}"].here["slow_down"] for model in ("vgg", "gpt2-xl", "gpt-6.7b")}
    assert 1.0 <= slow["vgg"] < slow["gpt2-xl"] < slow["gpt-6.7b"]
    assert rows["split 3 + 1, slowest model"].here["slow_down"] == max(
        row.here["slow_down"] for label, row in rows.items() if label.startswith("split") and "slowest" not in label
    )
