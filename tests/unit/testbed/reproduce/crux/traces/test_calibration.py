"""The fits of the trace figures: what they read, what they find, and what their inputs do to a replay."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.cli.main import main
from testbed.engines.replay.inputs import TraceJobs, clos_of_the_paper
from testbed.engines.replay.running_job import ReplayRequest
from testbed.progress import Progress
from testbed.reproduce import kept_replays
from testbed.reproduce.crux import trace_figures
from testbed.reproduce.crux.traces import calibration, fitted, inputs
from testbed.reproduce.crux.traces.calibration import NONE_ALONE, SHARING_JOBS, crossing
from testbed.reproduce.crux.traces.fitted import CHANNELS, SCATTER, TOGETHER, calibrated_on, fitted_inputs, scatter_of
from testbed.reproduce.crux.traces.inputs import A_PRIORI, TraceInputs
from testbed.reproduce.kept_replays import Cell, replayed
from testbed.reproduce.paper_experiment import PaperRow, Settings

FIGURES = ("trace_figures", "crux_figures", "paper_bars", "comparison")
"""Modules that hold bars of the paper, or compare with them."""


def test_the_fits_import_no_module_that_holds_another_bar() -> None:
    code = "import sys, testbed.reproduce.crux.traces.calibration; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert [name for name in loaded if name.startswith("testbed.reproduce") and name.split(".")[-1] in FIGURES] == []


def test_the_fits_hold_two_numbers_of_the_paper_and_no_bar_that_is_predicted() -> None:
    assert SHARING_JOBS == 0.363 and trace_figures.FIGURE_25["none"][0] == NONE_ALONE
    bars = {bar for of_fabric in trace_figures.FIGURE_23.values() for bar in of_fabric.values()}
    bars |= {bar for pair in trace_figures.FIGURE_25.values() for bar in pair}
    bars |= {bar for means in trace_figures.FIGURE_24.values() for bar in means}
    written = {
        node.value
        for module in (calibration, fitted, inputs)
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Constant) and isinstance(node.value, float)
    }
    grid = {*calibration.PROBABILITIES, *calibration.VOLUMES, *chain(*calibration.PRODUCTION)}
    assert (written - grid) & bars <= {SHARING_JOBS, NONE_ALONE, *SCATTER.values(), *chain(*TOGETHER.values())}


@given(st.floats(0, 1), st.floats(0.1, 3))
def test_a_crossing_lies_on_the_line(wanted: float, slope: float) -> None:
    found = crossing({0.0: 0.0, 0.5: 0.5 * slope, 1.0: slope}, wanted * slope)
    assert found == pytest.approx(wanted, abs=1e-9)


def test_a_curve_that_never_meets_the_number_has_no_crossing() -> None:
    assert crossing({0.0: 0.1, 1.0: 0.2}, 0.3) is None
    assert crossing({0.0: 0.3, 1.0: 0.3}, 0.3) == 0.0


def test_fitted_inputs_scatter_the_placement_none_and_no_other() -> None:
    none, muri = Cell("clos", "ecmp"), Cell("clos", "ecmp", "muri")
    assert TraceInputs(0.4, 2.0).of(none) == Cell("clos", "ecmp", "relaxed", relaxed=0.4, volume=2.0)
    assert TraceInputs(0.4, 2.0).of(muri) == Cell("clos", "ecmp", "muri", volume=2.0)
    assert A_PRIORI.of(none) == none and A_PRIORI.of(muri) == muri


def test_hardly_any_volume_leaves_links_shared_and_every_job_its_recorded_time() -> None:
    asked = Cell("clos", "ecmp", days=0.6)
    done = replayed(TraceInputs(1.0, calibration.RECORDED).of(asked))
    ended = [job for job in done.jobs if job.jct_s is not None]
    assert len(ended) > 20
    assert all((job.end_s or 0.0) - (job.start_s or 0.0) == pytest.approx(job.alone_s, rel=1e-4) for job in ended)
    assert done.series.means()[:, 3].max() > 0  # jobs that share a link


def test_a_larger_volume_costs_utilisation() -> None:
    small, large = (
        replayed(TraceInputs(0.5, volume).of(Cell("clos", "ecmp", days=0.4))).gpu_utilization for volume in (1.0, 2.0)
    )
    assert large < small < 1


def test_channels_leave_what_is_sent_as_it_is() -> None:
    fabric = clos_of_the_paper()
    request = ReplayRequest("job", 0.0, 60.0, 16, "crux-bert")
    one, four = (TraceJobs(fabric, 0.9, channels).build(request, fabric.gpus[4:20]) for channels in (1, 4))
    assert len(four.flows) == 4 * len(one.flows)
    assert sum(flow.bytes for flow in four.flows) == pytest.approx(sum(flow.bytes for flow in one.flows))
    whole = TraceJobs(fabric).build(request, fabric.gpus[4:20])
    assert sum(flow.bytes for flow in one.flows) == pytest.approx(0.9 * sum(flow.bytes for flow in whole.flows))


def rows_of(monkeypatch: pytest.MonkeyPatch, out: Path, experiment: str, key: str, slope: float) -> list[PaperRow]:
    """The rows of a fit whose replays give a straight line."""

    def result_of(asked: Cell, tell: object = None) -> dict[str, float]:
        value = asked.relaxed if experiment == "placement" else 1 / asked.volume
        return {key: slope * (value or 0.0)}

    return rows_with(monkeypatch, out, experiment, result_of)


def rows_with(
    monkeypatch: pytest.MonkeyPatch, out: Path, experiment: str, result_of: Callable[..., dict[str, float]]
) -> list[PaperRow]:
    """The rows of a fit whose replays are ``result_of``."""
    monkeypatch.setattr(kept_replays, "result_of", result_of)
    with Progress(quiet=True) as progress:
        settings = Settings(cases=0, days=0.1, seeds=2, numerics=("standard",), out=out)
        return list(getattr(calibration, experiment)(settings, progress))


def test_a_fit_prints_the_curve_and_where_it_meets_the_paper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = rows_of(monkeypatch, tmp_path, "placement", "sharing_jobs", 0.5)
    assert [row.here["value"] for row in rows[:-1]] == [0, 0.125, 0.25, 0.375, 0.5]
    assert rows[-1].label == "fit" and rows[-1].here["input"] == pytest.approx(0.726)
    assert not any(row.predicted for row in rows)
    assert {row.calibrated_on for row in rows} == {"the jobs that share a link (figure 6)"}
    assert "synthetic" in rows[0].note


def test_a_fit_that_fails_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = rows_of(monkeypatch, tmp_path, "volume", "gpu_utilization", 0.1)
    assert rows[-1].here == {} and rows[-1].note == "the curve never meets the paper's number"
    assert not any(row.predicted for row in rows)


def production_at(monkeypatch: pytest.MonkeyPatch, out: Path, most_sharing: float) -> list[PaperRow]:
    """The rows of the joint fit where sharing costs utilisation, and volumes do, and jobs that wait share more."""

    def result_of(asked: Cell, tell: object = None) -> dict[str, float]:
        scatter = asked.relaxed or 0.0
        sharing = most_sharing * scatter * (0.8 + 0.1 * asked.volume)
        return {"gpu_utilization": 0.9 - (0.15 + 0.1 * scatter) * asked.volume, "sharing_jobs": sharing}

    return rows_with(monkeypatch, out, "production", result_of)


def test_the_joint_fit_finds_where_one_replay_shows_both_numbers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    *rows, fit = production_at(monkeypatch, tmp_path, most_sharing=0.8)
    assert [row.here["volume"] for row in rows] == pytest.approx([3.4, 3.0, 0.51 / 0.19, 0.51 / 0.21], rel=1e-3)
    scatter, volume = fit.here["input"], fit.here["volume"]
    assert 0.9 - (0.15 + 0.1 * scatter) * volume == pytest.approx(NONE_ALONE, abs=0.002)
    assert 0.8 * scatter * (0.8 + 0.1 * volume) == pytest.approx(SHARING_JOBS, abs=0.002)
    assert not any(row.predicted for row in (*rows, fit))
    assert all("figure 6" in row.calibrated_on and "bar None" in row.calibrated_on for row in (*rows, fit))


def test_a_joint_fit_that_fails_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    *rows, fit = production_at(monkeypatch, tmp_path, most_sharing=0.1)
    assert fit.here == {} and fit.note == "both numbers never come out together"
    assert not any(row.predicted for row in (*rows, fit))


def test_inputs_are_of_the_channels_that_they_were_fitted_with() -> None:
    assert fitted_inputs() == TraceInputs(*TOGETHER[CHANNELS], CHANNELS)
    assert scatter_of() == TraceInputs(SCATTER[CHANNELS], 1.0, CHANNELS)
    assert SCATTER.keys() >= TOGETHER.keys()
    assert [fitted_inputs(channels).channels for channels in TOGETHER] == list(TOGETHER)
    assert "(1 channel)" in calibrated_on(TraceInputs(0.5, 2.0)) and "times 2;" in calibrated_on(TraceInputs(0.5, 2.0))


def test_channels_without_a_fit_are_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    command = ["reproduce", "crux-fig25", "--days", "0.1", "--jobs", "1", "--out", str(tmp_path), "--channels"]
    assert main([*command, "3"]) == 2
    assert capsys.readouterr().err.strip().endswith(", not 3")
    assert main([*command, "0"]) == 2
    assert "--channels must be 1 to " in capsys.readouterr().err
    assert main(["reproduce", "crux-fig16", "--channels", "2"]) == 2
    assert capsys.readouterr().err.strip() == "crux-fig16 takes no channels, expected no --channels"
