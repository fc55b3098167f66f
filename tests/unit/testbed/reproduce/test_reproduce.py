from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.cli.main import main
from testbed.reproduce.experiments import find, names
from testbed.reproduce.paper_experiment import PaperExperiment, PaperRow, Settings


def test_every_experiment_says_what_it_is() -> None:
    assert "crux-fig16" in names()
    for name in names():
        found = find(name)
        assert found.summary and found.source and found.columns
        assert (found.cases >= 1) + found.emulates + found.replays + found.artifacts == (
            name
            not in (
                "tiresias-example",
                "lina-step",
                "crux-calibration",
                "crux-slowdowns",
                "transports",
                "training",
                "today",
            )
        )


def test_the_function_of_every_experiment_exists() -> None:
    for name in names():
        assert callable(find(name).load())


def test_the_list_imports_no_experiment() -> None:
    listing = "import sys; from testbed.cli.main import main; main(['reproduce', '--json']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"numpy", "matplotlib", *(find(name).function.partition(":")[0] for name in names())}


def test_without_a_name_the_experiments_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce"]) == 0
    assert "crux-fig16" in capsys.readouterr().out


def test_the_list_can_be_read_by_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--json"]) == 0
    assert [one["name"] for one in json.loads(capsys.readouterr().out)["experiments"]] == list(names())


def test_json_is_the_agreed_document_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "crux-fig16", "--cases", "2", "--seed", "5", "--jobs", "1", "--json"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert list(found) == ["name", "command", "rows"]
    assert found["name"] == "crux-fig16"
    assert found["command"] == "python -m testbed reproduce crux-fig16 --cases 2 --seed 5"
    row = found["rows"][0]
    assert list(row) == ["label", "paper", "here", "predicted", "fitted", "a_priori", "calibrated_on", "note"]
    assert (row["predicted"], row["fitted"], row["a_priori"], row["calibrated_on"]) == (True, [], {}, "")
    assert row["label"] == "independent: path-selection crux" and row["paper"] == {"performance": 0.9769}
    assert 0.0 < row["here"]["performance"] <= 1.0 and row["here"]["spread"] >= 0.0
    assert "2 cases" in printed.err


def test_the_table_has_the_papers_number_beside_ours(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "crux-fig16", "--cases", "2", "--jobs", "1"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"assignment crux +97\.24 +\d+\.\d\d", printed)
    assert "2 cases, seed 1" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["crux-fig99"], "unknown experiment 'crux-fig99', did you mean 'crux-fig"),
        (["crux-fig16", "--cases", "0"], "--cases must be at least 1, not 0"),
        (["crux-fig16", "--jobs", "-1"], "--jobs must be at least 1, not -1"),
        (["crux-fig16", "--seeds", "2"], "crux-fig16 takes one seed, expected --seed and no --seeds"),
        (["crux-calibration", "--seed", "7"], "crux-calibration draws nothing by a seed, expected neither --seed nor"),
        (["crux-slowdowns", "--seeds", "2"], "crux-slowdowns draws nothing by a seed, expected neither --seed nor"),
    ],
)
def test_what_cannot_be_done_is_one_clear_line(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith(message) and error.count("\n") == 1


def test_all_with_a_seed_leaves_it_to_those_that_draw(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(PaperExperiment, "run", lambda *_of: [PaperRow("one")])
    assert main(["reproduce", "all", "--seed", "7", "--json", "--out", str(tmp_path)]) == 0
    found = {one["name"]: one["command"] for one in json.loads(capsys.readouterr().out)["experiments"]}
    assert all(("--seed 7" in command) == find(name).draws for name, command in found.items())
    assert found["crux-calibration"] == "python -m testbed reproduce crux-calibration"


@pytest.mark.parametrize("days", ["1", "0.25", "1.23456789", "2000000.5"])
def test_the_command_in_the_document_can_be_given_to_a_shell(
    days: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[Settings] = []

    def run(_self: PaperExperiment, settings: Settings, _progress: object) -> list[PaperRow]:
        asked.append(settings)
        return [PaperRow("one")]

    monkeypatch.setattr(PaperExperiment, "run", run)
    assert main(["reproduce", "crux-fig23", "--trace", "/tmp/my traces/it's.csv", "--days", days, "--json"]) == 0
    words = shlex.split(json.loads(capsys.readouterr().out)["command"])
    assert words[:3] == ["python", "-m", "testbed"]
    assert main([*words[3:], "--json"]) == 0
    assert asked[0] == asked[1]


@pytest.mark.parametrize("name", ["lyra-table", "philly-failures", "crux-fig25"])
def test_a_trace_whose_jobs_all_come_later_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "late.csv"
    trace.write_text("name,submit_s,duration_s,gpus\na,900000,100,1\n")
    given = ["--trace", str(trace), "--days", "1", "--jobs", "1", "--out", str(tmp_path)]
    assert main(["reproduce", name, *given]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error == f"{trace}: no job that uses GPUs in its first 1 days, expected some (--days)"


def test_manager_oracles_takes_a_folder_and_no_days(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "manager-oracles", "--traces", str(tmp_path)]) == 2
    assert "none of the traces is there, expected clones of petuum/adaptdl" in capsys.readouterr().err
    assert main(["reproduce", "manager-oracles", "--days", "2"]) == 2
    assert "manager-oracles plays whole traces, expected no --days" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        (1, "One seed has no spread: no difference proves anything."),
        (2, "With 2 seeds pure chance exceeds its spread in up to 29% of all cases."),
        (5, "With 5 seeds pure chance exceeds its spread in less than 1% of all cases."),
    ],
)
def test_under_a_table_of_replays_stands_what_pure_chance_does_with_so_many_seeds(
    seeds: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [PaperRow("one", {}, {"gain_points": 10.0, "gain_points_spread": 1.0})]
    monkeypatch.setattr(PaperExperiment, "run", lambda *_of: rows)
    assert main(["reproduce", "crux-fig25", "--seeds", str(seeds)]) == 0
    assert said in " ".join(capsys.readouterr().out.split())
