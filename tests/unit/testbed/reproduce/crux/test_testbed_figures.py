"""The testbed figures without an emulation: runs that are kept, rows, plots, and what the command prints of them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from testbed.cli.main import main
from testbed.errors import BadInputError, CannotRunError, RunFailedError
from testbed.progress import Progress
from testbed.reproduce import experiments, kept_runs
from testbed.reproduce.crux import figure_7
from testbed.reproduce.crux.figures_19_to_22 import jct_changes, reproduce, utilization
from testbed.reproduce.crux.fluid_prediction import predict
from testbed.reproduce.crux.paper_bars import FIGURES, chosen
from testbed.reproduce.kept_runs import CRUX, ECMP, ECMP_ALONE, IDEAL, Beside, Task, fingerprint
from testbed.reproduce.paper_experiment import Settings
from workloads.models.figure_calibration import A_PRIORI, FITTED, IDEAL_BARS

QUIET = Progress(quiet=True)
VALUES = {"ecmp": 0.6, "crux": 0.75, "ideal": 0.8, "ecmp-alone": 0.8}


class Emulator:
    """Stands in for the emulation: every job has the utilisation of its scheduler; remembers what it was asked for."""

    def __init__(self, verdict: str = "ok", fails: str = "") -> None:
        self.asked: list[str] = []
        self.verdict = verdict
        self.fails = fails

    def __call__(self, task: Task, out: Path, beside: Beside) -> tuple[Path, Mapping[str, Any]]:
        self.asked.append(str(task))
        if self.fails and self.fails in str(task):
            raise RunFailedError("the switch died")
        value = VALUES[task.treatment.name] + 0.01 * task.seed
        held = {"gpu_idle_s": {"exposed": 1.0, "straggler": 0.0, "start": 0.0}, "allocated_gpu_s": 4.0}
        jobs = [
            {
                "name": job.name,
                "gpus": len(job.gpus),
                "gpu_utilization": value,
                "jct_s": 100 / value,
                "jct_source": "projected",
                **held,
                "iteration_s": {"mean": job.compute_s / value},
            }
            for job in task.experiment().jobs
        ]
        entry = {
            "scheduler": task.treatment.name,
            "jobs": jobs,
            "fidelity": {"verdict": self.verdict},
            "gpu_utilization": value,
            "work_flop": 1e18,
            "duration_s": 5.0,
            **held,
        }
        directory = kept_runs.RunDirectory.create(out, task.scenario)
        head = {"scenario": task.scenario, "engine": "emulation", "seed": task.seed}
        rest = {"scale": {"bandwidth": 1.0, "time": 1.0}, "comparison": {"baseline": task.treatment.name}}
        summary = {"schema_version": 1, **head, "runs": [entry], **rest}
        directory.write_summary(summary)
        directory.finish()
        return directory.path, summary


def settings(out: Path, **changes: Any) -> Settings:
    return Settings(**{"cases": 0, "seeds": 2, "only": ("crux-fig22-8",), "out": out, **changes})


def test_every_row_of_the_paper_has_its_scenario_and_its_ideal_bar() -> None:
    bars = [bar for figure in FIGURES.values() for bar in figure]
    assert {bar.scenario: bar.ideal for bar in bars} == {name: bar.utilization for name, bar in IDEAL_BARS.items()}
    assert all(bar.without < bar.crux < bar.ideal for bar in bars)


def test_a_row_has_the_paper_beside_the_mean_and_the_spread_over_seeds(tmp_path: Path) -> None:
    emulator = Emulator()
    (row,) = reproduce("crux-fig22", settings(tmp_path), QUIET, emulator)
    assert row.paper["without"] == 0.726 and row.paper["gain_points"] == pytest.approx(2.3)
    assert row.here["without"] == pytest.approx(0.615) and row.here["crux"] == pytest.approx(0.765)
    assert row.here["without_spread"] == pytest.approx(0.01 / 2**0.5)
    assert row.here["ideal"] == pytest.approx(0.81) and row.here["ideal_seeds"] == 1
    assert row.here["gain_points"] == pytest.approx(15)
    assert row.here["jct_bert"] == pytest.approx((0.61 / 0.76 + 0.62 / 0.77) / 2 - 1)
    assert row.status == 0 and "JCT with Crux: resnet +1 % (here -20 %, " in row.note
    assert row.here["crux_least"] < row.here["crux_most"] and row.here["jct_bert_least"] < row.here["jct_bert_most"]
    assert len(emulator.asked) == 5


def test_the_plot_is_written_beside_the_runs(tmp_path: Path) -> None:
    reproduce("crux-fig22", settings(tmp_path), QUIET, Emulator())
    assert "<svg" in (tmp_path / "crux-fig22-8.svg").read_text("utf-8")
    assert (tmp_path / "crux-fig22-8.png").read_bytes().startswith(b"\x89PNG")


def test_finished_runs_are_taken_from_where_they_are_kept(tmp_path: Path) -> None:
    first = reproduce("crux-fig22", settings(tmp_path), QUIET, Emulator())
    emulator = Emulator()
    assert reproduce("crux-fig22", settings(tmp_path), QUIET, emulator) == first
    assert emulator.asked == []
    reproduce("crux-fig22", settings(tmp_path, seeds=3), QUIET, emulator)
    assert emulator.asked == ["crux-fig22-8, ecmp, seed 3", "crux-fig22-8, crux, seed 3"]


def test_a_figure_takes_the_runs_that_twin_kept_which_names_the_scenario_with_its_ending(tmp_path: Path) -> None:
    emulator = Emulator()
    for name in ("crux-fig22-8.yaml", "crux-fig22-8"):
        kept_runs.Runs(tmp_path, execute=emulator).all([Task(name, CRUX, 1)], QUIET)
    assert emulator.asked == ["crux-fig22-8.yaml, crux, seed 1"]


def test_after_an_interruption_only_what_was_not_finished_is_run(tmp_path: Path) -> None:
    class Interrupted(Emulator):
        def __call__(self, task: Task, out: Path, beside: Beside) -> tuple[Path, Mapping[str, Any]]:
            if len(self.asked) == 2:
                kept_runs.RunDirectory.create(out, task.scenario)
                raise KeyboardInterrupt
            return super().__call__(task, out, beside)

    with pytest.raises(KeyboardInterrupt):
        reproduce("crux-fig22", settings(tmp_path), QUIET, Interrupted())
    emulator = Emulator()
    reproduce("crux-fig22", settings(tmp_path), QUIET, emulator)
    assert [task.split(", ")[1:] for task in emulator.asked] == [
        ["ecmp", "seed 2"],
        ["crux", "seed 2"],
        ["ideal", "seed 1"],
    ]
    assert not list(tmp_path.rglob("UNFINISHED"))


def test_a_changed_scenario_or_version_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reproduce("crux-fig22", settings(tmp_path), QUIET, Emulator())
    monkeypatch.setattr(kept_runs, "package_version", lambda: "99")
    emulator = Emulator()
    reproduce("crux-fig22", settings(tmp_path), QUIET, emulator)
    assert len(emulator.asked) == 5


def test_a_fingerprint_knows_scenario_scheduler_and_seed() -> None:
    tasks = [
        Task("crux-fig22-8", ECMP, 1),
        Task("crux-fig22-8", ECMP, 2),
        Task("crux-fig22-8", CRUX, 1),
        Task("crux-fig22-8", IDEAL, 1),
        Task("crux-fig22-8", ECMP_ALONE, 1),
        Task("crux-fig22-16", ECMP, 1),
    ]
    assert len({fingerprint(task.experiment()) for task in tasks}) == len(tasks)


def test_runs_that_are_not_ok_are_named_and_made_again_on_request(tmp_path: Path) -> None:
    (row,) = reproduce("crux-fig22", settings(tmp_path, seeds=1), QUIET, Emulator("degraded"))
    assert row.status == 4
    assert "not ok: ecmp seed 1 degraded, crux seed 1 degraded, ideal seed 1 degraded" in row.note
    emulator = Emulator()
    reproduce("crux-fig22", settings(tmp_path, seeds=1), QUIET, emulator)
    assert emulator.asked == []
    (row,) = reproduce("crux-fig22", settings(tmp_path, seeds=1, redo=True), QUIET, emulator)
    assert len(emulator.asked) == 3 and row.status == 0


def test_a_run_that_fails_does_not_end_the_others_and_is_tried_again(tmp_path: Path) -> None:
    (row,) = reproduce("crux-fig22", settings(tmp_path), QUIET, Emulator(fails="crux, seed 1"))
    assert row.status == 1 and "crux seed 1 failed" in row.note
    assert row.here["without_seeds"] == 2 and row.here["crux_seeds"] == 1
    assert row.here["gain_points"] == pytest.approx(15)
    emulator = Emulator()
    reproduce("crux-fig22", settings(tmp_path), QUIET, emulator)
    assert emulator.asked == ["crux-fig22-8, crux, seed 1"]


def test_a_machine_that_cannot_emulate_ends_the_experiment(tmp_path: Path) -> None:
    def cannot(task: Task, out: Path, beside: Beside) -> tuple[Path, Mapping[str, Any]]:
        raise CannotRunError("not root")

    with pytest.raises(CannotRunError):
        reproduce("crux-fig22", settings(tmp_path), QUIET, cannot)


def test_rows_are_chosen_by_their_scenario() -> None:
    assert [bar.label for bar in chosen("crux-fig21", ("crux-fig21-2",))] == ["BERT-16 + 2 ResNet-4"]
    assert len(chosen("crux-fig21", ())) == 3
    with pytest.raises(BadInputError, match="crux-fig21 has no row 'crux-fig20', expected one of: crux-fig21-1, "):
        chosen("crux-fig21", ("crux-fig20",))


def test_utilisation_weighs_jobs_by_gpus_whatever_their_windows() -> None:
    jobs = [{"name": "a", "gpus": 24, "gpu_utilization": 1.0}, {"name": "b", "gpus": 8, "gpu_utilization": 0.5}]
    assert utilization({"jobs": jobs}) == pytest.approx(0.875)


def test_changes_of_jct_are_means_by_kind_of_job() -> None:
    before = {"jobs": [{"name": name, "jct_s": 100.0} for name in ("gpt", "bert-0", "bert-1")]}
    after = {"jobs": [{"name": n, "jct_s": s} for n, s in (("gpt", 75.0), ("bert-0", 100.0), ("bert-1", 102.0))]}
    assert jct_changes(before, after) == pytest.approx({"gpt": -0.25, "bert": 0.01})


@pytest.mark.parametrize("name", ["crux-fig19-2", "crux-fig22-8"])
def test_the_fluid_model_is_at_the_ideal_bar_for_jobs_alone_and_nobody_is_above(name: str) -> None:
    ideal, ecmp, crux = (predict(Task(name, treatment, 1).experiment()) for treatment in (IDEAL, ECMP, CRUX))
    weights = {job.name: len(job.gpus) for job in Task(name, IDEAL, 1).experiment().jobs}
    mean = sum(weights[job] * value for job, value in ideal.items()) / sum(weights.values())
    assert mean == pytest.approx(IDEAL_BARS[name].utilization, abs=0.005)
    assert all(value <= ideal[job] + 0.005 for found in (ecmp, crux) for job, value in found.items())


def test_figure_7_compares_every_seed_with_the_same_jobs_alone_on_the_same_paths(tmp_path: Path) -> None:
    emulator = Emulator()
    rows = figure_7.reproduce(settings(tmp_path, seeds=2, only=()), QUIET, emulator)
    assert emulator.asked[:2] == ["crux-fig7, ecmp, seed 1", "crux-fig7, ecmp-alone, seed 1"]
    first = rows[0]
    assert first.label == "GPT iteration" and first.paper["change"] == 0.11
    assert first.here["change"] == pytest.approx((0.81 / 0.61 + 0.82 / 0.62) / 2 - 1)
    assert first.here["alone_s"] == pytest.approx((1.5 / 0.81 + 1.5 / 0.82) / 2)
    assert {row.label for row in rows[1:4]} == {"GPT throughput", "BERT throughput", "GPU utilisation"}
    assert all("fluid_change" in row.here for row in rows)
    assert all("ten bars without Crux" in row.calibrated_on and row.fitted == () for row in rows)
    assert all(row.a_priori.keys() >= {"change", "percentile"} for row in rows[:4])
    assert first.a_priori["change"] != pytest.approx(first.here["change"])
    assert (tmp_path / "crux-fig7.svg").exists()


def test_figure_7_by_the_flow_engine_depends_on_the_inputs() -> None:
    priori, fitted = (figure_7.computed(1, inputs) for inputs in (A_PRIORI, FITTED))
    assert priori is not None and fitted is not None
    assert priori.alone_s < 1.55 and fitted.alone_s < 1.55  # 1.5 s of compute hide its communication
    assert priori.changes != fitted.changes


def test_gpt_alone_keeps_its_paths_when_bert_is_there() -> None:
    for seed in (1, 2):
        beside, alone = (Task("crux-fig7", treatment, seed).experiment() for treatment in (ECMP, ECMP_ALONE))
        assert beside.jobs == alone.jobs


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> Emulator:
    emulator = Emulator()
    monkeypatch.setattr("testbed.reproduce.crux.figures_19_to_22.reproduce.__defaults__", (emulator,))
    return emulator


def test_the_command_prints_the_paper_beside_what_was_found(
    tmp_path: Path, emulated: Emulator, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["reproduce", "crux-fig22", "--row", "crux-fig22-8", "--seeds", "1", "--out", str(tmp_path)]
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["command"] == "python -m testbed reproduce crux-fig22 --seeds 1 --row crux-fig22-8"
    assert found["rows"][0]["paper"]["crux"] == 0.749 and found["rows"][0]["here"]["crux"] == pytest.approx(0.76)
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert "1 hash seeds from 1" in printed.out and "72.6" in printed.out
    assert "kept from before" in printed.err
    assert len(emulated.asked) == 3


def test_all_keeps_rows_and_goes_on_where_it_was_interrupted(
    tmp_path: Path, emulated: Emulator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = (dataclasses.replace(experiments.find("crux-fig16"), cases=1), experiments.find("crux-fig22"))
    monkeypatch.setattr(experiments, "EXPERIMENTS", {each.name: each for each in few})
    arguments = ["reproduce", "all", "--seeds", "1", "--jobs", "1", "--out", str(tmp_path), "--json"]
    assert main(arguments) == 0
    first = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in first["experiments"]] == ["crux-fig16", "crux-fig22"]
    assert len(emulated.asked) == 9
    assert main(arguments) == 0
    again = capsys.readouterr()
    assert json.loads(again.out) == first and "crux-fig16: kept from before" in again.err
    assert len(emulated.asked) == 9
    assert json.loads((tmp_path / "crux-fig22.json").read_text("utf-8"))["rows"] == first["experiments"][1]["rows"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["crux-fig22", "--cases", "3"], "crux-fig22 has no cases, expected --seeds"),
        (["tiresias-example", "--cases", "3"], "tiresias-example has no cases, expected no --cases"),
        (["crux-fig16", "--seeds", "3"], "crux-fig16 takes one seed, expected --seed and no --seeds"),
        (["crux-fig22", "--seeds", "0"], "--seeds must be at least 1, not 0"),
        (["all", "--row", "crux-fig20"], "--row belongs to one experiment, not to all"),
    ],
)
def test_what_does_not_fit_an_experiment_is_one_clear_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *arguments]) == 2
    assert capsys.readouterr().err.strip() == message
