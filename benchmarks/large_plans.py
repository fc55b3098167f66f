"""How long ``testbed plan`` takes for a job on 16,384 GPUs, and how much memory; target: 10 s and 2 GiB.

Llama 3 405B as in its training report (tensor 8, pipeline 16, 128 replicas), on rails of 400 Gbit/s without
oversubscription, the flow engine, by scheduler; medians of processes of their own, each started from nothing.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.common import Line, Scenario, file_of, main, say

TITLE: Final = "Plans of 16,384 GPUs"
HOSTS: Final = 2048
SCHEDULERS: Final = ("ecmp", "crux", "spray")
REPEATS: Final = 3
MOST_S: Final = 10.0
MOST_GIB: Final = 2.0


def scenario_of(scheduler: str) -> Scenario:
    """The job under one scheduler."""
    asked: Any = {"name": "ecmp", "label": "spray", "load_balancing": "spray"} if scheduler == "spray" else scheduler
    return {
        "name": "large-plan",
        "fabric": {
            "kind": "rail-optimized", "hosts": HOSTS, "segments": HOSTS // 16, "aggregations": 16,
            "gpus_per_host": 8, "nics_per_host": 8, "port_rate": "400Gbps", "fabric_rate": "400Gbps",
        },
        "jobs": [
            {
                "name": "dense", "model": "llama3-405b", "gpus": 8 * HOSTS, "sequence": 8192, "microbatches": 16,
                "parallel": {"tensor": 8, "pipeline": 16},
            }
        ],
        "channels": 1,
        "schedulers": [asked],
        "measure": {"iterations": 2, "warmup": 1, "time_limit": "300s"},
    }  # fmt: skip


def measure(quick: bool) -> Sequence[Line]:
    """A row for each scheduler."""
    return [_row(scheduler, 1 if quick else REPEATS) for scheduler in SCHEDULERS]


def _row(scheduler: str, repeats: int) -> Line:
    say(f"{scheduler}: planning")
    with file_of(scenario_of(scheduler)) as path:
        found = [_planned(path) for _ in range(repeats)]
    seconds, gib = (median(values) for values in zip(*found, strict=True))
    columns = {"scheduler": scheduler, "GPUs": 8 * HOSTS, "s": round(seconds, 1), "GiB": round(gib, 2)}
    return Line(columns, "10 s, 2 GiB", "pass" if seconds <= MOST_S and gib <= MOST_GIB else "missed")


def _planned(path: Path) -> tuple[float, float]:
    """Seconds and GiB of a process that plans the scenario; ``RuntimeError`` if it fails."""
    began = time.monotonic()
    quiet = os.open(os.devnull, os.O_WRONLY)
    arguments = [sys.executable, "-m", "testbed", "plan", str(path), "--engine", "flow"]
    pid = os.posix_spawn(sys.executable, arguments, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, quiet, 1)])
    os.close(quiet)
    _, status, used = os.wait4(pid, 0)
    if status:
        raise RuntimeError(f"testbed plan {path} ended with status {os.waitstatus_to_exitcode(status)}")
    return time.monotonic() - began, used.ru_maxrss / 2**20


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
