"""Trace experiments on small cuts: what is kept, what is replayed again, and what the rows say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.cli.main import main
from testbed.progress import Progress
from testbed.reproduce import kept_replays
from testbed.reproduce.crux import trace_figures
from testbed.reproduce.kept_replays import Cell, cell, results, trace_of
from testbed.reproduce.paper_experiment import Settings

HOURS = 0.25
SETTINGS = {"cases": 0, "processes": 1, "days": HOURS}


REPLAYED = {
    **dict.fromkeys(("time_mean", "busy_share", "mean_stretch", "mean_jobs", "mean_gpus", "sharing_gpus"), 0.5),
    **dict.fromkeys(("finished", "waiting", "cpu_s", "peak_bytes"), 1.0),
}
"""A result without what the test is about."""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Cell]:
    """The cells that are really made."""
    found: list[Cell] = []
    original = kept_replays.result_of

    def result_of(asked: Cell, tell: kept_replays.Report | None = None) -> kept_replays.Result:
        found.append(asked)
        return original(asked, tell)

    monkeypatch.setattr(kept_replays, "result_of", result_of)
    return found


def run(asked: Sequence[Cell], settings: Settings) -> dict[Cell, kept_replays.Result]:
    with Progress(quiet=True) as progress:
        return results(asked, settings, progress)


def test_a_finished_replay_is_kept_and_another_cut_is_another_replay(tmp_path: Path, made: list[Cell]) -> None:
    settings = Settings(**SETTINGS, out=tmp_path)
    asked = cell(settings, "clos", "crux")
    first = run([asked], settings)
    assert run([asked], settings) == first and made == [asked]
    longer = Settings(**{**SETTINGS, "days": 2 * HOURS}, out=tmp_path)
    run([cell(longer, "clos", "crux")], longer)
    assert len(made) == 2


@pytest.mark.parametrize("folder", [False, True])
def test_a_trace_that_has_changed_is_replayed_again(tmp_path: Path, made: list[Cell], folder: bool) -> None:
    path = tmp_path / "trace" / "own.csv"
    path.parent.mkdir()
    settings = Settings(**SETTINGS, out=tmp_path, trace=path.parent if folder else path)
    asked = cell(settings, "clos", "ecmp")
    found = []
    for gpus in (16, 16, 8):
        text = f"j1,worker,1,Terminated,0,600,600,1,{100 * gpus},V100\n"
        of_folder = {path.parent / "pai_task_table.csv": text}
        of_file = {path: f"job_id,submission_time,duration,num_gpu\n1,0,600,{gpus}\n"}
        for file, written in (of_folder if folder else of_file).items():
            file.write_text(written, "utf-8")
        found.append(run([asked], settings)[asked]["mean_gpus"])
    assert len(made) == 2
    assert found[0] == found[1] == 2 * found[2]


class Heard(Progress):
    """Keeps what it hears."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.values: list[float] = []

    def advance_to(self, value: float, note: str = "") -> None:
        self.values.append(value)


@pytest.mark.parametrize("processes", [1, 2])
def test_progress_goes_on_while_replays_are_made(tmp_path: Path, processes: int) -> None:
    settings, heard = Settings(**{**SETTINGS, "processes": processes}, out=tmp_path), Heard()
    results([cell(settings, "clos", "crux"), cell(settings, "clos", "ecmp")], settings, heard)
    assert heard.values == sorted(heard.values)
    assert (heard.values[0], heard.values[-1]) == (0, pytest.approx(2.0, abs=0.2))
    assert any(value % 1 for value in heard.values) or processes > 1  # in processes they may be done at the first look


def test_an_interrupted_replay_leaves_those_that_were_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original = kept_replays.result_of

    def result_of(asked: Cell, tell: kept_replays.Report | None = None) -> kept_replays.Result:
        if asked.scheduler == "cassini":
            raise KeyboardInterrupt
        return original(asked, tell)

    monkeypatch.setattr(kept_replays, "result_of", result_of)
    command = ["reproduce", "crux-fig24", "--seeds", "1", "--days", str(HOURS), "--jobs", "1", "--out", str(tmp_path)]
    assert main(command) == 1
    said = capsys.readouterr().err
    assert f"go on with: python -m testbed reproduce crux-fig24 --seeds 1 --days {HOURS} --out {tmp_path}" in said
    kept = sorted(path.name.split("-")[2] for path in (tmp_path / "replays").iterdir())
    assert kept == ["sincronia"] * 2 + ["taccl"] * 2  # under each of the numerical settings


def test_a_trace_of_ones_own_is_replayed_and_named(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("job_id,submission_time,duration,num_gpu\n1,0,600,16\n2,60,600,8\n", "utf-8")
    settings = Settings(**SETTINGS, out=tmp_path, trace=path)
    trace = trace_of(cell(settings, "clos", "ecmp"))
    assert [job.gpus for job in trace.jobs] == [16, 8]
    assert "synthetic" not in kept_replays.trace_note(trace)


def test_the_synthetic_trace_says_so_in_the_note_of_the_first_row(tmp_path: Path) -> None:
    settings = Settings(**SETTINGS, out=tmp_path)
    with Progress(quiet=True) as progress:
        rows = trace_figures.figures_4_to_6(settings, progress)
    assert "synthetic" in rows[0].note and rows[1].note == ""
    assert set(rows[0].here) == {"value"}  # of one seed; numerical settings do not change the trace
    assert set(rows[-1].here) == {"value", "value_numerical_spread"}


def test_rows_say_which_differences_are_smaller_than_their_spread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    busy = {"sincronia": 0.3, "taccl-star": 0.5, "cassini": 0.5, "crux-pa": 0.5, "crux-ps-pa": 0.61, "crux": 0.62}

    def result_of(asked: Cell, tell: kept_replays.Report | None = None) -> kept_replays.Result:
        # The seed moves all alike; numerical settings move Crux by two points.
        moved = 0.1 * (asked.seed - 1) + 0.02 * (asked.numerics != "standard" and asked.scheduler == "crux")
        moved -= 0.07 * bool(asked.options)
        return REPLAYED | {"gpu_utilization": busy[asked.scheduler] + moved}

    monkeypatch.setattr(kept_replays, "result_of", result_of)
    assert main(["reproduce", "crux-fig23", "--days", "1", "--jobs", "1", "--out", str(tmp_path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "3 seeds from 1, each with numerical settings standard and longer" in said
    assert "(-2.0\N{PLUS-MINUS SIGN}2.0)" in said and "-33.0\N{PLUS-MINUS SIGN}2.0" in said and "(-33.0" not in said
    assert "against crux, below the spread, which proves nothing: clos crux-ps-pa, double-sided crux-ps-pa" in said
    assert "the same number as None in figure 25, to which the volumes are fitted: not in the mean" in said
    assert (
        "clos taccl-star, equal distances share a level: another reading of its rule: not in the mean" in said
        and "-20.0" in said
    )
    assert "mean of 11 bars" in said and "clos: not in the paper's order: taccl-star over crux-pa" in said


def test_bars_of_figure_23_say_which_are_predicted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def result_of(asked: Cell, tell: kept_replays.Report | None = None) -> kept_replays.Result:
        a_priori = asked.volume == 1.0 and asked.relaxed is None
        paper = trace_figures.FIGURE_23[asked.fabric][asked.scheduler]
        return REPLAYED | {"gpu_utilization": paper + (0.04 if a_priori else 0.01 * asked.seed)}

    monkeypatch.setattr(kept_replays, "result_of", result_of)
    settings = Settings(**SETTINGS, seeds=3, numerics=("standard",), out=tmp_path)
    with Progress(quiet=True) as progress:
        rows = trace_figures.figure_23(settings, progress)
    assert [row.label for row in rows if not row.predicted] == ["clos sincronia"]
    assert rows[-1].here["distance"] == pytest.approx(2) and rows[-1].a_priori["distance"] == pytest.approx(4)
    assert rows[-1].note == "clos: order as published; double-sided: order as published"
    assert all("figure 6" in row.calibrated_on and "bar None" in row.calibrated_on for row in rows)


def test_only_none_alone_is_fitted_in_figure_25(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def result_of(asked: Cell, tell: kept_replays.Report | None = None) -> kept_replays.Result:
        return REPLAYED | {"gpu_utilization": 0.6 if asked.scheduler == "crux" else 0.4}

    monkeypatch.setattr(kept_replays, "result_of", result_of)
    settings = Settings(**SETTINGS, seeds=1, numerics=("standard",), out=tmp_path)
    with Progress(quiet=True) as progress:
        rows = trace_figures.figure_25(settings, progress)
    assert [row.fitted for row in rows] == [("alone",), (), ()]
    assert "against ecmp, below the spread, which proves nothing: none, muri, hived" in rows[0].note  # one seed
    path = tmp_path / "own.csv"
    path.write_text("job_id,submission_time,duration,num_gpu\n1,0,600,16\n", "utf-8")
    with Progress(quiet=True) as progress:
        own = trace_figures.figure_25(replace(settings, trace=path), progress)
    assert [row.fitted for row in own] == [(), (), ()]  # the inputs are those of the synthetic trace
    assert all(row.predicted and row.a_priori["gain_points"] == pytest.approx(20) for row in rows)


def test_spans_that_end_after_the_replay_have_no_mean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def result_of(asked: Cell, tell: kept_replays.Report | None = None) -> kept_replays.Result:
        bins = [[2.0, 1.0]] * int(asked.days * 24)
        return REPLAYED | {"bin_s": 3600.0, "columns": ["allocated", "busy"], "series": bins}

    monkeypatch.setattr(kept_replays, "result_of", result_of)
    monkeypatch.setattr(trace_figures, "write_plot", lambda *_: None)
    settings = Settings(cases=0, days=4, seeds=1, numerics=("standard",), out=tmp_path)
    with Progress(quiet=True) as progress:
        rows = trace_figures.figure_24(settings, progress)
    assert rows[0].here.keys() & trace_figures.SPANS.keys() == {"mean", "first_day", "solid"} == rows[0].paper.keys()


def test_numerical_settings_can_be_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["reproduce", "crux-fig4-6", "--days", "0.1", "--seeds", "1", "--jobs", "1", "--out", str(tmp_path)]
    assert main([*command, "--numerics", "longer"]) == 0
    assert "each with numerical settings longer" in " ".join(capsys.readouterr().out.split())
    assert main([*command, "--numerics", "long"]) == 2
    assert capsys.readouterr().err.startswith("unknown numerical settings 'long', ")
    assert main(["reproduce", "crux-fig16", "--numerics", "longer"]) == 2
    assert "crux-fig16 replays no trace with several settings, expected no --numerics" in capsys.readouterr().err


def test_a_damaged_trace_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.csv"
    path.write_text("job_id,submission_time,duration,num_gpu\n1,0,-600,16\n", "utf-8")
    assert main(["reproduce", "crux-fig4-6", "--trace", str(path), "--out", str(tmp_path)]) == 2
    (line,) = [text for text in capsys.readouterr().err.splitlines() if str(path) in text]
    assert line.startswith(f"{path}:2: ") and "-600" in line


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["crux-fig16", "--days", "1"], "crux-fig16 replays no trace, expected neither --trace nor --days"),
        (["crux-fig23", "--days", "0"], "--days must be more than 0, not 0"),
        (["lyra-table", "--days", "inf"], "--days must be finite, not inf"),
        (["crux-fig23", "--row", "crux"], "crux-fig23 emulates nothing, expected no --row"),
        (["lyra-table", "--seeds", "2"], "lyra-table takes one seed, expected --seed and no --seeds"),
    ],
)
def test_an_option_that_does_not_fit_is_one_line(
    arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *arguments]) == 2
    assert capsys.readouterr().err.strip() == line


def test_a_job_larger_than_the_fabric_is_named_below_the_figure(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("job_id,submission_time,duration,num_gpu\n1,0,600,16\nhuge,5,600,4000\n", "utf-8")
    settings = Settings(cases=0, processes=1, days=0.02, seeds=1, numerics=("standard",), trace=path, out=tmp_path)
    with Progress(quiet=True) as progress:
        (first, *_others) = trace_figures.figure_25(settings, progress)
    assert "jobs that could never start: 1; job 'huge' asks for 4000 GPUs, the fabric has 2768" in first.note
