"""Lina's step and inference, by the flow engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from testbed.progress import Progress
from testbed.reproduce.managers import lina_inference, lina_step
from testbed.reproduce.paper_experiment import PaperRow, Settings
from workloads.communication.experts import Experts
from workloads.communication.gradients import Gradients
from workloads.models.catalogue import CATALOGUE
from workloads.models.model import Model


@pytest.fixture(scope="module")
def step() -> lina_step.Computed:
    return lina_step.Computed()


def test_all_to_alls_first_are_never_slower_and_gradients_beside_are_faster_than_after(
    step: lina_step.Computed,
) -> None:
    for gpus in lina_step.PLACEMENTS.values():
        here = lina_step.variants(step, CATALOGUE["moe"], gpus, 1e6)
        assert here["pipelined_s"] <= here["first_s"] + 1e-6
        assert here["first_s"] <= here["evenly_s"] + 1e-6
        assert here["first_s"] <= here["after_s"] + 1e-6


def test_micro_ops_as_large_as_an_all_to_all_change_nothing(step: lina_step.Computed) -> None:
    whole, cut = (lina_step.at(step, lina_step.Point(chunk=chunk)) for chunk in (100e6, 5e6))
    assert whole["pipelined_s"] == pytest.approx(whole["first_s"])
    assert cut["pipelined_s"] < whole["pipelined_s"]


def test_the_point_of_the_papers_factor_is_found_on_a_line_with_its_inputs() -> None:
    def step(model: Model, gpus: Sequence[str], scheduler: str, gradients: Gradients, experts: Experts | None) -> float:
        if experts is not None:
            return 1.0
        return 1.0 + model.compute_s / CATALOGUE["moe"].compute_s

    swept = {point: lina_step.at(step, point) for line in lina_step.lines() for point in line}
    row = lina_step.nearest(step, swept, "faster")
    assert row.label == "1.73 x, against gradients beside"
    assert row.here["faster"] == pytest.approx(1.73, abs=0.01)
    assert row.fitted == ("faster",) and "of compute" in row.note


def test_where_the_factor_never_comes_out_the_largest_is_shown() -> None:
    swept = {point: {"faster": 1.0 + point.compute / 10} for line in lina_step.lines() for point in line}
    row = lina_step.nearest(lambda *_: 1.0, swept, "faster")
    assert row.label == "largest, against gradients beside"
    assert row.note.startswith("1.73 x does not come out; the largest at compute x 4")
    assert not row.fitted


def test_the_more_skewed_popularity_is_the_more_placing_by_it_gains(tmp_path: Path) -> None:
    where = lina_inference.servers()
    factors = [lina_inference.numbers(where, skew, 6, 1) for skew in (0.0, 1.0, 2.0)]
    medians = [each["median_times"] for each in factors]
    assert medians == sorted(medians)
    assert all(each["lina_p95_s"] <= each["even_p95_s"] for each in factors)


def test_inference_has_a_row_per_skew_and_one_beside_the_paper(tmp_path: Path) -> None:
    rows: Sequence[PaperRow] = lina_inference.reproduce(Settings(cases=2, out=tmp_path), Progress(quiet=True))
    assert len(rows) == len(lina_inference.SKEWS) + 1
    assert rows[-1].paper == {"p95_times": 1.63, "median_times": 1.45}
    assert "skew" in rows[-1].note
