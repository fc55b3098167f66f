"""Runs of several schedulers at a time are the same as one after the other, and end together if one fails."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed import all_runs
from testbed.api import run_scenario
from testbed.cli.main import main
from testbed.errors import EXIT_OK, RunFailedError
from testbed.progress import Progress
from testbed.side_by_side import Tell, each_in_a_process, processes_for

ROWS = ("iterations.csv", "links.csv", "messages.csv", "alone.csv", "decisions.json")


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """Two jobs on one link, at line rate but for the size of packets."""
    job = {"model": "bert", "compute": "0.02s", "communication": "40MB", "channels": 1}
    document: Mapping[str, Any] = {
        "fabric": {
            **{"kind": "clos", "hosts": 4, "gpus_per_host": 1, "nics_per_host": 1, "tors": 2, "aggregations": 1},
            **{"port_rate": "100Gbps", "fabric_rate": "100Gbps"},
        },
        "jobs": [
            {"name": "one", "placement": ["h0", "h2"], **job},
            {"name": "two", "placement": ["h1", "h3"], **job, "jitter": 0.1},
        ],
        "network": {"transport": "dcqcn"},
        "scale": {"bandwidth": 20},
        "measure": {"iterations": 3, "warmup": 1},
        "schedulers": ["ecmp", "crux", "sincronia", "ideal"],
    }
    path = tmp_path / "scenario.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    return path


def test_two_at_a_time_write_what_one_at_a_time_writes(
    scenario: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for processes in (2, 1):
        monkeypatch.setattr(all_runs, "processes_for", lambda _tasks, count=processes: count)
        result = run_scenario(scenario, engine="simulation", out=tmp_path / str(processes))
        files = {
            (scheduler, name): (result.directory / scheduler / name).read_bytes()
            for scheduler in ("ecmp", "crux", "sincronia", "ideal")
            for name in ROWS
        }
        found.append((files, {**result.summary, "left_out_of_files": None}))
    assert found[0] == found[1]


def _place(place: int, tell: Tell) -> tuple[int, int]:
    tell({"phase": "compute", "value": 1.0, "total": 2.0})
    return place, os.getpid()


def test_every_task_has_its_result_in_its_place_from_a_process_of_its_own() -> None:
    with Progress(quiet=True) as progress:
        found = each_in_a_process([partial(_place, place) for place in range(5)], 2, progress)
    assert [place for place, _ in found] == list(range(5))
    assert os.getpid() not in {process for _, process in found}


def _fail(_tell: Tell) -> None:
    raise RunFailedError("no room")


def test_what_a_task_raises_ends_all() -> None:
    with Progress(quiet=True) as progress, pytest.raises(RunFailedError, match="no room"):
        each_in_a_process([partial(_place, 0), _fail, partial(_place, 2)], 2, progress)


def test_a_process_of_a_pool_has_none_of_its_own() -> None:
    with Progress(quiet=True) as progress:
        (found,) = each_in_a_process([lambda _tell: processes_for(4)], 1, progress)
    assert found == 1


def test_repetitions_at_a_time_are_those_of_one_after_the_other(
    scenario: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def summaries(folder: str, *more: str) -> list[dict[str, Any]]:
        common = [str(scenario), "--engine", "simulation", "--scheduler", "ecmp", "--json", "--out"]
        assert main(["run", *common, str(tmp_path / folder), *more]) == EXIT_OK
        printed = capsys.readouterr()
        assert ("2 repetitions" in printed.err) == ("--repeat" in more)
        found = json.loads(printed.out)
        return found if isinstance(found, list) else [found]

    together = summaries("together", "--repeat", "2", "--seed", "5")
    alone = [*summaries("first", "--seed", "5"), *summaries("second", "--seed", "6")]
    assert [run["runs"] for run in together] == [run["runs"] for run in alone]
    assert together[0]["runs"] != together[1]["runs"]
    assert (tmp_path / "together" / "index.html").is_file()
