"""Runs of the testbed as a user starts them, for tests on real packets."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.common import available_datapaths
from testbed.api import run_scenario
from topologies.datapath import Datapath

ROOT = Path(__file__).resolve().parents[2]
LOCK_WAIT_S = 300
NOT_BELIEVABLE = 4
ATTEMPTS = 3
TOO_FEW = "raise measure.time_limit"
"""What a run says in whose time limit a job made too few iterations."""
BUSY = 0.3
"""Share of the CPU that work of others takes where a run without enough iterations proves nothing."""
OURS = ("mark", "path")
"""Findings that no load of the machine causes."""


def default_datapath() -> Datapath:
    """The datapath that emulation tests take here; while tests are collected, the environment allows ``userspace``."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TESTBED_DATAPATHS", os.environ["DATAPATHS_OF_EMULATION_TESTS"])
        return available_datapaths()[0]


def default_and_userspace() -> list[object]:
    """The datapath that emulation tests take here, and ``userspace``, for the few modules that test both."""
    userspace = pytest.param("userspace", marks=pytest.mark.whole_machine)
    return [userspace] if default_datapath() == "userspace" else [default_datapath(), userspace]


def busy_share() -> float:
    """The share of the machine's CPU that is in use now, over two seconds in which the caller does nothing."""

    def spent() -> tuple[float, float]:
        values = [float(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
        return values[3] + values[4], sum(values)

    idle, whole = spent()
    time.sleep(2)
    idle_then, whole_then = spent()
    return 1 - (idle_then - idle) / max(1.0, whole_then - whole)


class Repeats:
    """Seconds that all tests together may spend on repeating runs of more than ``SHORT_S`` that were disturbed.

    A noisy machine must not take all day; short runs are repeated in any case.
    """

    SHORT_S = 20.0
    left_s = 120.0


class Finished:
    """A run that has ended: exit status, what it printed, its directory and summary."""

    def __init__(self, done: subprocess.CompletedProcess[str], out: Path) -> None:
        self.status = done.returncode
        self.error = done.stderr
        directories = sorted(path for path in out.iterdir() if path.is_dir()) if out.exists() else []
        self.directory = directories[-1] if directories else out
        summary = self.directory / "summary.json"
        self.summary: dict[str, Any] = json.loads(summary.read_text()) if summary.exists() else {}

    def run(self, scheduler: str) -> dict[str, Any]:
        """The entry of ``scheduler`` in the summary."""
        return next(entry for entry in self.summary["runs"] if entry["scheduler"] == scheduler)

    def job(self, scheduler: str, name: str) -> dict[str, Any]:
        """The entry of job ``name`` under ``scheduler``."""
        return next(entry for entry in self.run(scheduler)["jobs"] if entry["name"] == name)

    def decisions(self, scheduler: str) -> list[dict[str, Any]]:
        """The decisions of ``scheduler``, in order."""
        found: list[dict[str, Any]] = json.loads((self.directory / scheduler / "decisions.json").read_text())
        return found

    def environment(self, scheduler: str) -> dict[str, Any]:
        """The evidence that ``scheduler``'s run left."""
        found: dict[str, Any] = json.loads((self.directory / scheduler / "run.json").read_text())["environment"]
        return found

    def rows(self, scheduler: str, name: str) -> list[dict[str, str]]:
        """The rows of one of ``scheduler``'s CSV files."""
        with (self.directory / scheduler / name).open() as file:
            return list(csv.DictReader(file))

    def skip_if_disturbed(self) -> None:
        """Tests on times mean nothing where other load or stolen CPU disturbed the run. A wrong mark or path fails."""
        for entry in self.summary["runs"]:
            wrong = [finding for finding in entry["fidelity"]["findings"] if finding["kind"] in OURS]
            assert wrong == []
            if entry["fidelity"]["verdict"] != "ok":
                pytest.skip(f"the machine disturbed the run: {'; '.join(entry['fidelity']['reasons'])}")


def command(*arguments: str) -> list[str]:
    """The command line of the testbed in this environment."""
    return [sys.executable, "-m", "testbed", *arguments]


def run_to_end(
    scenario: str | Path,
    out: Path,
    *arguments: str,
    start: Sequence[str] = (),
    cwd: Path = ROOT,
    environment: Mapping[str, str] | None = None,
) -> Finished:
    """Run a scenario to its end; waits while another run has the machine.

    ``start``: another command to start with; ``cwd`` and ``environment``: where, and with which variables more.
    """
    deadline = time.monotonic() + LOCK_WAIT_S
    while True:
        done = subprocess.run(
            [*(start or command()), "run", str(scenario), "--out", str(out), *arguments],
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment} if environment else None,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if "another emulation is running" not in done.stderr or time.monotonic() > deadline:
            return Finished(done, out)
        time.sleep(2)


def run_text(scenario: str, folder: Path, *arguments: str) -> Finished:
    """Run a scenario given as text, in ``folder``, as :func:`run_until_believable` does; it has to come to its end."""
    path = folder / "scenario.yaml"
    path.write_text(scenario)
    done = run_until_believable(path, folder / "runs", *arguments)
    assert done.status in (0, NOT_BELIEVABLE), done.error
    return done


def run_until_believable(scenario: str | Path, out: Path, *arguments: str) -> Finished:
    """Run a scenario until its verdict is ok, while there is time for another attempt; the last run otherwise.

    Where other work on the machine leaves a job too few iterations, there is no run: the tests on it are skipped.
    """
    for attempt in range(ATTEMPTS):
        began = time.monotonic()
        done = run_to_end(scenario, out / str(attempt), *arguments)
        too_slow = TOO_FEW in done.error and not done.summary
        if done.status != NOT_BELIEVABLE and not too_slow:
            break
        if too_slow and attempt + 1 == ATTEMPTS and (busy := busy_share()) > BUSY:
            pytest.skip(f"others use {busy:.0%} of the CPU: {done.error.strip().splitlines()[-1]}")
        print(f"inconclusive: {[entry['fidelity']['reasons'] for entry in done.summary.get('runs', ())] or done.error}")
        taken_s = time.monotonic() - began
        if taken_s > Repeats.SHORT_S:
            if taken_s > Repeats.left_s:
                break
            Repeats.left_s -= taken_s
    return done


def beside_simulation(scenario: str, folder: Path) -> tuple[Finished, dict[str, dict[str, Any]], list[str]]:
    """Run ``scenario`` under ECMP with packets, and simulate the same packets.

    Returns the run, job -> its entry in the simulation, and what the run says against itself; that must be nothing
    that no load of the machine causes.
    """
    done = run_text(scenario, folder)
    path = folder / "simulated.yaml"
    path.write_text(scenario)
    (run,) = run_scenario(path, engine="simulation", out=folder / "simulated").summary["runs"]
    reasons = done.run("ecmp")["fidelity"]["reasons"]
    assert not [reason for reason in reasons if any(word in reason for word in ("sent again", *OURS))], reasons
    return done, {job["name"]: job for job in run["jobs"]}, reasons
