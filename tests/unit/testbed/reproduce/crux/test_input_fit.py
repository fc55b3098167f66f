"""Inputs of figures 19 to 22: fitted to bars without Crux alone, on a surface of which each point is computed once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.api import prepare
from testbed.progress import Progress
from testbed.reproduce.crux.figure_7 import percentile
from testbed.reproduce.crux.inputs import input_fit
from testbed.reproduce.crux.inputs.bars_without_crux import WITHOUT_CRUX
from testbed.reproduce.crux.inputs.figure_runs import numbers, overrides, ranges
from testbed.reproduce.crux.inputs.input_fit import SEEDS, Surface, Task, fit, grid, seen, utilization
from testbed.reproduce.crux.paper_bars import FIGURES
from testbed.reproduce.paper_experiment import PaperRow, Settings
from testbed.scenario import load
from workloads.models.figure_calibration import A_PRIORI, EQUALLY_FITTED, FITTED, FigureInputs

TRUE = FigureInputs(0.125, 0.25, 2 / 9, 4, 0.25)


def test_the_fit_imports_no_bar_with_crux() -> None:
    code = (
        "import sys, testbed.reproduce.crux.inputs.input_fit; print(*[name for name in sys.modules if 'bars' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["testbed.reproduce.crux.inputs.bars_without_crux"]


def test_the_bars_without_crux_are_those_of_the_figures() -> None:
    read_off = {
        "crux-fig19": [0.759, 0.673, 0.597],
        "crux-fig20": [0.655],
        "crux-fig21": [0.721, 0.697, 0.645],
        "crux-fig22": [0.726, 0.646, 0.541],
    }
    assert {figure: [WITHOUT_CRUX[bar.scenario] for bar in bars] for figure, bars in FIGURES.items()} == read_off
    assert len(WITHOUT_CRUX) == 10


def bent(scenario: str, inputs: FigureInputs) -> float:
    """A smooth stand-in for the flow engine, right at :data:`TRUE`."""
    mine, true = seen(scenario, inputs), seen(scenario, TRUE)
    off = abs(mine.bert_overlap - true.bert_overlap) + abs(mine.resnet_overlap - true.resnet_overlap)
    off += abs(mine.gpt_hidden_share - true.gpt_hidden_share) + abs(mine.channels - true.channels) / 10
    off += abs(mine.resnet_compute_s - true.resnet_compute_s)
    return WITHOUT_CRUX[scenario] + 0.1 * off


def test_the_fit_finds_the_inputs_that_the_bars_come_from_and_computes_nothing_twice() -> None:
    asked: list[Task] = []

    def compute(tasks: Sequence[Task]) -> Iterable[float]:
        asked.extend(tasks)
        return [bent(scenario, inputs) for scenario, inputs, _ in tasks]

    losses = fit(Surface(compute), tuple(WITHOUT_CRUX))
    best = next(iter(losses))
    assert best == TRUE and losses[best] == pytest.approx(0.0)
    assert len(asked) == len(set(asked))
    assert list(losses.values()) == sorted(losses.values())
    assert {seed for _, _, seed in asked} == set(SEEDS)


class Counted:
    """A stand-in for the flow engine that counts its runs and fails at run number ``fails_at``."""

    def __init__(self, fails_at: int = 0) -> None:
        self.runs = 0
        self._fails_at = fails_at

    def __call__(self, tasks: Sequence[Task]) -> Iterable[float]:
        for scenario, inputs, _ in tasks:
            self.runs += 1
            if self.runs == self._fails_at:
                raise KeyboardInterrupt
            yield bent(scenario, inputs)


def runs_with(kept: Path, fails_at: int = 0) -> int:
    """How many runs ten hash seeds of one scenario take beside the file ``kept``."""
    counted = Counted(fails_at)
    surface = Surface(counted, kept)
    surface.prepare(["crux-fig22-8"], [TRUE], range(101, 111))
    assert surface.bar("crux-fig22-8", TRUE, range(101, 111)) == pytest.approx(WITHOUT_CRUX["crux-fig22-8"])
    return counted.runs


def test_runs_are_kept_also_those_of_a_step_that_was_interrupted(tmp_path: Path) -> None:
    kept = tmp_path / "runs.json"
    with pytest.raises(KeyboardInterrupt):
        runs_with(kept, fails_at=4)
    assert runs_with(kept) == 7
    assert runs_with(kept) == 0


def test_runs_of_other_code_are_not_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "runs.json"
    assert runs_with(kept) == 10
    monkeypatch.setattr(input_fit, "computed_by", lambda: "other code")
    assert runs_with(kept) == 10


def test_another_scenario_is_other_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = []
    for text in ("jobs: {}", "jobs: []"):
        (tmp_path / "crux-fig22-8").write_text(text)
        input_fit.computed_by.cache_clear()
        found.append(input_fit.computed_by())
    input_fit.computed_by.cache_clear()
    assert found[0] != found[1]


@pytest.mark.parametrize("text", ["", '{"runs": [', "[]", '[["crux-fig22-8", [0.1, 0.2], 101, 0.5]]', '{"runs": []}'])
def test_a_damaged_file_of_runs_is_made_again(text: str, tmp_path: Path) -> None:
    kept = tmp_path / "runs.json"
    kept.write_text(text)
    assert runs_with(kept) == 10
    assert runs_with(kept) == 0


class InThisProcess:
    """A pool of processes that is none."""

    def map(self, function: object, tasks: Sequence[Task], chunksize: int) -> Iterable[float]:
        assert function is utilization and chunksize
        return [bent(scenario, inputs) for scenario, inputs, _ in tasks]


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, PaperRow]:
    """The rows of the fit with :func:`bent` in place of the flow engine."""
    monkeypatch.setattr(input_fit, "started", lambda *_of: nullcontext(InThisProcess()))
    with Progress(quiet=True) as progress:
        return {row.label: row for row in input_fit.reproduce(Settings(cases=0, out=tmp_path), progress)}


def test_only_bars_that_were_left_out_are_predicted(rows: dict[str, PaperRow]) -> None:
    assert [label for label, row in rows.items() if row.predicted] == [f"{name}, left out" for name in WITHOUT_CRUX]
    assert all(row.calibrated_on for row in rows.values())


def test_each_figure_is_left_out_of_one_fit(rows: dict[str, PaperRow]) -> None:
    assert rows["fitted"].here["channels"] == TRUE.channels and rows["fitted"].here["error_points"] == pytest.approx(0)
    for figure in ("crux-fig19", "crux-fig20", "crux-fig21", "crux-fig22"):
        assert rows[f"without {figure}"].here["error_points"] == pytest.approx(0)
    assert rows["crux-fig20, left out"].here["without"] == pytest.approx(WITHOUT_CRUX["crux-fig20"])


def test_of_points_near_the_least_loss_the_one_with_the_fewest_channels_is_taken() -> None:
    two, four, far = replace(TRUE, channels=2), TRUE, replace(TRUE, channels=1)
    other = replace(two, bert_overlap=0.5)
    assert input_fit.chosen({four: 1.0, two: 1.09, other: 1.08, far: 1.2}) == other
    assert input_fit.chosen({four: 1.0, two: 1.11, far: 1.2}) == four


def test_the_seeds_of_the_fit_are_not_those_of_the_packets() -> None:
    assert min(SEEDS) > 100 and len(SEEDS) >= 20


def test_the_fitted_inputs_are_a_point_of_the_grid() -> None:
    assert FITTED in grid()
    assert A_PRIORI in grid()


def test_the_fitted_inputs_have_the_fewest_channels_of_those_that_fit_as_well() -> None:
    assert set(EQUALLY_FITTED) <= set(grid())
    assert EQUALLY_FITTED[0] == FITTED and all(other.channels >= FITTED.channels for other in EQUALLY_FITTED)


def test_ranges_hold_what_the_fitted_inputs_give() -> None:
    spans, here = ranges("crux-fig22-8", [101]), numbers("crux-fig22-8", FITTED, (101,))
    assert spans.keys() == {f"{key}_{end}" for key in here for end in ("least", "most")}
    assert all(spans[f"{key}_least"] <= value <= spans[f"{key}_most"] for key, value in here.items())
    assert spans["crux_least"] < spans["crux_most"]


@pytest.mark.parametrize("scenario", WITHOUT_CRUX)
def test_the_scenario_files_have_the_fitted_inputs(scenario: str) -> None:
    as_written, changed = load(scenario), load(scenario, overrides(scenario, FITTED))
    assert as_written.channels == changed.channels
    for mine, other in zip(as_written.jobs, changed.jobs, strict=True):
        assert mine.communication == pytest.approx(other.communication, rel=0.0005)
        assert mine.overlap is None or mine.overlap == pytest.approx(other.overlap, abs=1e-6)
    for written, wanted in zip(
        prepare(scenario).jobs, prepare(scenario, overrides=overrides(scenario, FITTED)).jobs, strict=True
    ):
        assert written.compute_s == pytest.approx(wanted.compute_s)


def test_a_run_is_the_same_every_time() -> None:
    task = ("crux-fig22-8", TRUE, 101)
    assert utilization(task) == utilization(task)


def test_a_percentile_is_the_share_of_draws_that_move_less() -> None:
    assert percentile([0.0, 0.05, 0.2, 0.4], 0.11) == 0.5
    assert percentile([-0.05, -0.2], -0.1) == 0.5
