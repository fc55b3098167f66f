"""What a run takes is read from outside, and counts only where the run is ok."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import arrival, leftovers, scale
from benchmarks.common import Line
from testbed.errors import CannotRunError, RunFailedError


@pytest.fixture
def in_no_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(scale, "SETTLE_S", 0.5)
    monkeypatch.setattr(scale, "LOOK_S", 0.5)
    yield


def a_run_that(does: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """Let ``python -m testbed run`` be the code ``does``."""
    (folder / "testbed.py").write_text(does)
    (folder / "python").write_text(f"#!/bin/sh\nexec {sys.executable} {folder}/testbed.py\n")
    (folder / "python").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    return folder / "scenario.yaml"


@pytest.mark.usefixtures("in_no_time")
@pytest.mark.parametrize(
    ("does", "error", "words"),
    [
        ("raise SystemExit(0)", RunFailedError, "ended before it was looked at"),
        ("import sys; print('no switch', file=sys.stderr); raise SystemExit(1)", RunFailedError, "failed: no switch"),
        (
            "import sys; print('another emulation is running', file=sys.stderr); raise SystemExit(3)",
            CannotRunError,
            "another emulation is running",
        ),
    ],
)
def test_a_run_that_cannot_be_watched_says_why(
    does: str, error: type[Exception], words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(error, match=words):
        scale._watched_run(a_run_that(does, monkeypatch, tmp_path), tmp_path)


def test_a_process_that_has_just_ended_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    monkeypatch.setattr(leftovers, "mark_of", lambda pid: "7-1")
    every_process = Path.iterdir

    def with_one_that_is_gone(folder: Path) -> Iterator[Path]:
        yield Path("/proc", str(child.pid))
        yield from every_process(folder)

    monkeypatch.setattr(Path, "iterdir", with_one_that_is_gone)
    assert scale._ticks(7)["not idle"] > 0


def row(gpus: int, nics: int, up_s: float, busy: float, verdict: str = "ok") -> Line:
    return Line({"GPUs": gpus, "NICs": nics, "up s": up_s, "not idle %": busy, "verdict": verdict})


def outcomes(small: Line, large: Line) -> list[str]:
    return [line.outcome for line in scale._growth(small, large)]


def test_growth_is_judged_per_nic_and_only_between_runs_that_are_ok() -> None:
    small = row(256, 128, 2.0, 30)
    assert outcomes(small, row(1024, 512, 8.0, 120)) == ["pass", "pass"]
    assert outcomes(small, row(1024, 512, 8.1, 119)) == ["missed", "pass"]
    assert outcomes(small, row(1024, 512, 8.0, 120, "degraded")) == ["inconclusive", "inconclusive"]


def test_a_row_is_tried_again_until_its_run_is_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = iter([row(96, 48, 1.0, 10, "degraded"), row(96, 48, 1.0, 10), row(96, 48, 1.0, 10, "invalid")])
    monkeypatch.setattr(scale, "_row_once", lambda document: next(tried))
    assert scale._row({"name": "scale-96"}).columns["verdict"] == "ok"


def test_the_large_fabric_has_the_datapath_that_its_rows_name() -> None:
    assert arrival.clos1024()["datapath"] == "nftables"
