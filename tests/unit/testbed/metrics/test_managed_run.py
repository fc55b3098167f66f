"""A managed run as its reader sees it: stints are one job again, and GPUs that wait are idle. Flow engine, no root."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed.api import run_scenario
from testbed.cli.main import main
from testbed.errors import BadInputError
from testbed.metrics.summary import summary
from testbed.report import html
from testbed.results.run_directory import RunDirectory

FABRIC = {
    "kind": "clos",
    "hosts": 4,
    "gpus_per_host": 4,
    "nics_per_host": 2,
    "tors": 2,
    "aggregations": 2,
    "port_rate": "100Gbps",
    "fabric_rate": "100Gbps",
}
JOBS: list[dict[str, Any]] = [
    {"name": "long", "model": "bert", "gpus": 16, "iterations": 10, "communication": "2GB", "overlap": 0},
    {"name": "short", "model": "resnet", "gpus": 8, "iterations": 4, "start": "1s"},
]


def scenario(folder: Path, manager: Any = "srtf", jobs: list[dict[str, Any]] = JOBS, **values: Any) -> str:
    path = folder / "managed.yaml"
    document = {"fabric": FABRIC, "manager": manager, "jobs": jobs, "schedulers": ["ecmp", "crux"], **values}
    path.write_text(yaml.safe_dump(document), "utf-8")
    return str(path)


def runs(folder: Path, *arguments: Any, **values: Any) -> list[dict[str, Any]]:
    result = run_scenario(scenario(folder, *arguments, **values), engine="flow", out=folder / "runs")
    found: list[dict[str, Any]] = result.summary["runs"]
    return found


def test_stints_of_a_job_are_one_job_with_all_its_iterations(tmp_path: Path) -> None:
    for run in runs(tmp_path):
        long, short = run["jobs"]
        assert (long["stints"], long["iterations"], long["preemptions"]) == (["long", "long@2"], 10, 1)
        assert (short["stints"], short["iterations"], short["queue_s"]) == (["short"], 4, 0.0)
        assert long["queue_s"] == pytest.approx(short["jct_s"])
        assert long["jct_source"] == "measured" and long["jct_s"] > short["jct_s"]
        assert run["manager"]["preemptions"] == 1 and run["manager"]["unfinished"] == []


def test_idle_time_and_compute_add_up_to_the_time_that_gpus_were_held(tmp_path: Path) -> None:
    for run in runs(tmp_path):
        whole = run["gpu_utilization"] * run["allocated_gpu_s"] + sum(run["gpu_idle_s"].values())
        assert whole == pytest.approx(run["allocated_gpu_s"])


def test_gpus_that_a_job_holds_while_it_waits_for_more_are_idle(tmp_path: Path) -> None:
    jobs = [{"name": name, "model": "bert", "gpus": 12, "iterations": 5} for name in ("one", "two")]
    (run, _) = runs(tmp_path, "kubernetes", jobs, measure={"time_limit": "10s"})
    assert (run["jobs"], run["gpu_utilization"]) == ([], 0.0)
    assert run["allocated_gpu_s"] == pytest.approx(16 * run["duration_s"]) == run["gpu_idle_s"]["start"]
    assert run["manager"]["unfinished"] == ["one", "two"]
    assert run["manager"]["partly_started"] == {"one": "holds 8 of 12 GPUs", "two": "holds 8 of 12 GPUs"}


def test_the_summary_comes_again_from_the_files(tmp_path: Path) -> None:
    result = run_scenario(scenario(tmp_path), engine="flow", out=tmp_path / "runs")
    directory = RunDirectory.open(result.directory)
    again = summary(directory.read_experiment(), directory.read_records())
    assert json.loads(json.dumps(again["runs"])) == result.summary["runs"]
    html.build(directory, plots=True)
    assert (result.directory / "plots" / "occupancy_crux.svg").is_file()


def test_ideal_has_no_meaning_where_a_manager_places_jobs(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="ideal runs each job by itself, expected another scheduler"):
        run_scenario(scenario(tmp_path, schedulers=["ideal"]), engine="flow", out=tmp_path)


@pytest.mark.parametrize(
    ("manager", "said"),
    [
        ("borg", "unknown manager 'borg', expected one of capacity-scheduler, consolidated, fair"),
        ({"name": "hived", "placer": {"virtual_clusters": {"a": {"rack": 1}}}}, "rack"),
        ({"policy": {"name": "tiresias", "slices": 3}}, "unknown option 'slices' of policy tiresias"),
    ],
)
def test_a_manager_that_cannot_be_is_named_with_its_line(tmp_path: Path, manager: Any, said: str) -> None:
    path = scenario(tmp_path, manager)
    line = next(n for n, text in enumerate(Path(path).read_text("utf-8").splitlines(), 1) if text.startswith("manager"))
    with pytest.raises(BadInputError) as error:
        run_scenario(path, engine="flow", out=tmp_path)
    assert str(error.value).startswith(f"{path}:{line}: ") and said in str(error.value)


def test_validate_and_plan_say_who_places_the_jobs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = scenario(tmp_path)
    assert main(["validate", path]) == 0
    assert "2 jobs placed by a manager on 16 GPUs" in capsys.readouterr().out
    assert main(["plan", path]) == 0
    said = capsys.readouterr().out
    assert "jobs are placed as they come (queue fifo-backfill, policy srtf, placer consolidated" in said
