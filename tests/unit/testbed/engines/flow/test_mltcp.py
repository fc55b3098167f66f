"""Two equal jobs on one link under MLTCP: from iteration to iteration they drift apart as the formula says."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from controller.schedulers.mltcp import next_shift
from testbed.api import prepare
from testbed.engines.flow.engine import FlowEngine
from testbed.results.record import RunRecord

COMPUTE_S, COMMUNICATION_S, AHEAD_S = 0.5, 0.4, 0.02


def scenario(folder: Path, scheduler: object) -> str:
    """Two jobs of two hosts that share the one cable between two ToRs; the second begins a little later."""
    fabric = {"kind": "clos", "hosts": 4, "gpus_per_host": 1, "nics_per_host": 1, "tors": 2, "aggregations": 1}
    job = {
        "model": "bert",
        "collective": "point-to-point",
        "compute": f"{COMPUTE_S}s",
        "overlap": 0,
        "communication": f"{COMMUNICATION_S * 100e9 / 8}B",
    }
    jobs = [
        {"name": "first", "placement": ["h0", "h2"], **job},
        {"name": "second", "placement": ["h1", "h3"], "start": f"{AHEAD_S}s", **job},
    ]
    document = {
        "fabric": {**fabric, "port_rate": "100Gbps", "fabric_rate": "100Gbps"},
        "jobs": jobs,
        "schedulers": [scheduler],
        "measure": {"iterations": 12, "warmup": 0},
    }
    path = folder / "own.yaml"
    path.write_text(yaml.safe_dump(document), "utf-8")
    return str(path)


def shifts(record: RunRecord) -> list[float]:
    """By how much the first job is ahead at the end of each iteration."""
    ends: dict[str, dict[int, float]] = {"first": {}, "second": {}}
    for row in record.iterations:
        ends[row.job][row.iteration] = max(row.end_s, ends[row.job].get(row.iteration, 0.0))
    both = sorted(ends["first"].keys() & ends["second"].keys())
    return [ends["second"][number] - ends["first"][number] for number in both]


def run(folder: Path, scheduler: object) -> RunRecord:
    (experiment,) = prepare(scenario(folder, scheduler), engine="flow").experiments
    return FlowEngine().run(experiment, folder, lambda _message: None)


@pytest.mark.parametrize(("slope", "intercept"), [(1.75, 0.25), (4.0, 0.25), (0.5, 1.0)])
def test_the_shift_grows_as_the_formula_says(slope: float, intercept: float, tmp_path: Path) -> None:
    found = shifts(run(tmp_path, {"name": "mltcp", "slope": slope, "intercept": intercept}))
    expected, drift = AHEAD_S, []
    for _ in found:
        expected = next_shift(expected, COMMUNICATION_S, slope, intercept)
        drift.append(expected)
    assert found == pytest.approx(drift, rel=0.02)


def test_jobs_end_up_as_fast_as_alone(tmp_path: Path) -> None:
    record = run(tmp_path, "mltcp")
    last = {job: max(row.end_s for row in record.iterations if row.job == job) for job in ("first", "second")}
    before = {
        job: max(row.end_s for row in record.iterations if row.job == job and row.end_s < last[job] - 0.1)
        for job in last
    }
    for job in last:
        assert last[job] - before[job] == pytest.approx(COMPUTE_S + COMMUNICATION_S, rel=0.01)


def test_without_it_they_stay_as_they_began(tmp_path: Path) -> None:
    assert shifts(run(tmp_path, "ecmp")) == pytest.approx([AHEAD_S] * 12, abs=1e-3)
