"""A runner that computes nothing, and the command with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.cli.main import main
from testbed.results.run_directory import RunDirectory
from testbed.sweep.running import Execute, Work, attempt
from testbed.sweep.values import PointOutcome, SweepPoint, outcome_of

TWO_BY_TWO = """
scenario: hello.yaml
engine: flow
schedulers: [ecmp, crux]
seeds: [1, 2]
set:
  jobs.small.jitter: [0.0, 0.1]
  measure.warmup: [1, 2]
"""
GAIN = {"ecmp": 0.0, "crux": 0.1}
JOBS = {"big": 10.0, "small": 20.0}


def summary_of(point: SweepPoint, verdict: str = "ok", check: bool = True) -> dict[str, Any]:
    """A summary whose utilisation is 0.5, a tenth more with Crux, a hundredth more per seed."""
    held = {"gpu_idle_s": {"exposed": 1.0, "straggler": 0.0, "start": 0.0}, "allocated_gpu_s": 4.0}
    jobs = [{"name": name, "jct_s": jct_s, "jct_source": "projected", **held} for name, jct_s in JOBS.items()]
    runs = [
        {
            "scheduler": name,
            "gpu_utilization": 0.5 + gain + 0.01 * point.seed,
            "fidelity": {"verdict": verdict},
            "jobs": jobs,
            "work_flop": 1e18,
            "duration_s": 5,
            **held,
        }
        for name, gain in GAIN.items()
    ]
    return {
        "schema_version": 2,
        "scenario": "hello",
        "engine": "flow",
        "seed": point.seed,
        "scale": {"bandwidth": 1.0, "time": 1.0},
        "runs": runs,
        "comparison": {"baseline": "ecmp", "crux": {"gpu_utilization_points": 10.0, "jct_change": {}}},
        "checks": [{"check": "crux.gpu_utilization > 0.5", "passed": check}],
    }


class FakeRunner:
    """Writes a finished run; ``ends``: part of a point's name -> what happens there instead of ``ok``."""

    def __init__(self, ends: dict[str, Any] | None = None) -> None:
        self.ends = ends or {}
        self.asked: list[str] = []

    def __call__(self, point: SweepPoint, folder: Path) -> PointOutcome:
        self.asked.append(point.name)
        end = next((end for part, end in self.ends.items() if part in point.name), "ok")
        directory = RunDirectory.create(folder, "hello")
        if isinstance(end, BaseException):
            with directory:  # as a run that fails leaves it
                raise end
        summary = summary_of(point, "ok" if end == "check" else end, end != "check")
        directory.write_summary(summary)
        directory.finish()
        return outcome_of(summary, directory.path.name)


class InThisProcess:
    """Makes the points one after the other, where a test sees what was asked."""

    def __init__(self, runner: FakeRunner, count: int) -> None:
        self._runner = runner

    def __enter__(self) -> Execute:
        return self._work

    def __exit__(self, *error: object) -> None:
        pass

    def _work(self, work: Work) -> Iterator[tuple[SweepPoint, PointOutcome] | None]:
        for point, folder in work:
            yield None
            yield point, attempt(self._runner, point, folder)


class _Engine:
    def check(self) -> None:
        pass


@pytest.fixture
def fake_runner() -> type[FakeRunner]:
    """Makes runners for tests that call them."""
    return FakeRunner


@pytest.fixture
def sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, FakeRunner, str, str]]:
    """``sweep(*options, ends=..)`` -> status, the runner, standard output and error."""
    (tmp_path / "two.yaml").write_text(TWO_BY_TWO)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("testbed.sweep.command.create_engine", lambda name: _Engine())
    monkeypatch.setattr("testbed.sweep.command.Processes", InThisProcess)

    def run(
        *options: str, ends: dict[str, Any] | None = None, file: str = "two.yaml"
    ) -> tuple[int, FakeRunner, str, str]:
        runner = FakeRunner(ends)
        monkeypatch.setattr("testbed.sweep.command.runner", runner)
        status = main(["sweep", file, *options])
        said = capsys.readouterr()
        return status, runner, said.out, said.err

    return run
