"""A replay gives the same numbers, to every digit, in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPLAY = """
import sys

sys.path.insert(0, sys.argv[1])
from benchmarks.manager_cases import CASES, random_trace
from benchmarks.manager_properties import FABRIC, request_of
from controller.schedulers.registry import create
from testbed.engines.replay.inputs import TraceJobs
from testbed.engines.replay.manager_adapter import ManagedPlacing
from testbed.engines.replay.replay import Replay

requests = [request_of(number, job) for number, job in enumerate(random_trace(5, 24))]
jobs = TraceJobs(FABRIC)
for name, scheduler in (("none", "crux"), ("none", "ecmp"), ("gandiva", "cassini"), ("optimus", "sincronia")):
    for jump in (True, False):
        placing = ManagedPlacing(CASES[name].manager(1), FABRIC, jobs.stage_times)
        done = Replay(FABRIC, create(scheduler), placing, requests, jobs.build, jump=jump).run()
        print(name, scheduler, done.totals.busy, done.totals.allocated, done.jobs, done.series.means().tolist())
"""


def _printed(hash_seed: str) -> str:
    root = Path(__file__).parents[5]
    done = subprocess.run(
        [sys.executable, "-c", REPLAY, str(root)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.fail(done.stderr)
    return done.stdout


def test_replays_are_the_same_to_every_digit_whatever_the_hashes_of_strings() -> None:
    first, second = _printed("1"), _printed("2")
    assert first == second and first.count("\n") == 8
