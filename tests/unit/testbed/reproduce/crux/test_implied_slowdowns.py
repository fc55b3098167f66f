"""What two bars and two changes of JCT say of each kind of job."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.reproduce.crux.implied_slowdowns import by_itself, grid, implied, nearest_to_all, shared, slowdowns
from testbed.reproduce.crux.paper_bars import FIGURES, Bar
from workloads.models.figure_calibration import FITTED, FigureInputs, calibrations

GPUS = {"bert": 16, "resnet": 4}


@pytest.mark.parametrize("bar", [bar for figure in ("crux-fig21", "crux-fig22") for bar in FIGURES[figure]])
def test_the_utilisations_of_both_kinds_give_back_the_bars_and_the_changes_of_jct(bar: Bar) -> None:
    without, crux = implied(bar, GPUS)
    for found, utilization in ((without, bar.without), (crux, bar.crux)):
        assert sum(GPUS[kind] * found[kind] for kind in GPUS) / 20 == pytest.approx(utilization)
    for kind, change in bar.jct.items():
        assert without[kind] / crux[kind] - 1 == pytest.approx(change)


def test_in_the_paper_a_resnet_loses_nothing_beside_the_bert_that_it_slows_by_a_fifth() -> None:
    without, _ = implied(FIGURES["crux-fig21"][0], GPUS)
    assert without["bert"] < 0.838 / 1.2
    assert without["resnet"] > 0.792


def test_the_grid_holds_jobs_that_overlap_nothing_and_everything() -> None:
    overlaps = {(point.bert_overlap, point.resnet_overlap) for point in grid()}
    assert {(0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0)} <= overlaps


def test_the_point_for_all_rows_is_the_one_that_is_least_off_in_both_bars() -> None:
    near, far = FITTED, replace(FITTED, channels=1)
    one_of_them = {far: (0.0, 0.0), near: (1.0, -1.0)}
    row = nearest_to_all({"one": one_of_them, "other": {far: (3.0, -3.0), near: (-1.0, 1.0)}})
    assert not row.predicted and "without and with Crux" in row.calibrated_on
    assert row.here == pytest.approx({"nearest_without": 1.0, "nearest_crux": 1.0})
    assert row.note == "overlap of BERT 0.25, of ResNet 0.125, channels: 4"


def test_a_point_that_a_job_could_not_be_measured_at_is_none_for_all_rows() -> None:
    other = replace(FITTED, channels=1)
    row = nearest_to_all({"one": {FITTED: (5.0, 5.0), other: (0.0, 0.0)}, "other": {FITTED: (5.0, 5.0)}})
    assert row.here == pytest.approx({"nearest_without": 5.0, "nearest_crux": 5.0})


def slowed(inputs: FigureInputs) -> dict[str, float]:
    gpus, alone = by_itself("crux-fig21-1")
    pair = shared(("crux-fig21-1", inputs))
    assert gpus == GPUS and pair is not None
    return slowdowns(alone, pair)


def test_under_crux_the_job_of_the_lower_level_pays_for_the_other() -> None:
    found = slowed(FITTED)
    assert found["bert_crux"] < 0.02 < found["bert_without"]
    assert 0.05 < found["resnet_crux"] < 0.2


def test_a_resnet_that_is_due_when_berts_next_burst_begins_waits_for_a_burst_in_every_iteration() -> None:
    resonant = FigureInputs(0.25, 0.125, 1 / 3, 4, resnet_compute_s=0.35)
    bert, resnet = (calibrations("crux-fig21-1", resonant)[kind] for kind in ("bert", "resnet"))
    pause_s = bert.compute_s / bert.utilization - bert.communication_s
    assert resnet.compute_s / resnet.utilization == pytest.approx(pause_s, rel=0.02)
    assert slowed(resonant)["resnet_crux"] > 0.5
