"""Two weeks under every cluster manager: CPU time and memory of each replay, in a process of its own.

The synthetic trace of 14 days, 2,000 GPUs and about 2,700 GPU jobs, on the Clos of 173 ToRs (2,768 GPUs), Crux deciding
paths and levels. Target: 2 minutes on one core. Without contention for GPUs a policy has little to say, so a crowded
trace of 5,000 GPU jobs follows, which overloads the Clos; how often jobs were preempted or moved stands beside it.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from typing import Final

from benchmarks.common import Line, main, say
from testbed.reproduce.kept_replays import Cell, Result, result_of
from workloads.managers.catalogue import MANAGERS

TITLE: Final = "Replays under every cluster manager"
SCHEDULER: Final = "crux"
DAYS: Final = 14.0
MOST_CPU_S: Final = 120.0
NEVER_ENDS: Final = ("kubernetes",)
"""Jobs that each hold what others need may wait for ever: what is left to replay after that is nothing."""


def measure(quick: bool) -> list[Line]:
    """Return a line per trace and manager; ``quick`` replays one day."""
    days = 1.0 if quick else DAYS
    lines = []
    for crowded, name in product((False, True), MANAGERS):
        say(f"{_trace(crowded)} trace, {name}: {days:g} days")
        cell = Cell("clos", SCHEDULER, name, days=days, reference=True, crowded=crowded)
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            lines.append(_line(cell, pool.submit(result_of, cell).result()))
    return lines


def _trace(crowded: bool) -> str:
    return "crowded" if crowded else "standard"


def _line(cell: Cell, found: Result) -> Line:
    cpu_s, manager, name = float(found["cpu_s"]), found["manager"], cell.manager
    columns = {
        "trace": _trace(cell.crowded),
        "manager": name,
        "jobs": found["jobs"],
        "ended": found["finished"],
        "GPU utilisation": f"{found['gpu_utilization']:.2%}",
        "preempted": f"{manager['preemptions']:.0f}",
        "moved": f"{manager['migrations']:.0f}",
        "mean JCT": f"{manager['jct_mean_s'] / 3600:.1f} h",
        "mean queueing": f"{manager['queue_mean_s'] / 3600:.1f} h",
        "CPU s": round(cpu_s, 1),
        "MiB": round(float(found["peak_bytes"]) / 2**20),
    }
    stuck = name in NEVER_ENDS and found["finished"] < found["jobs"]
    note = "some jobs wait for ever" if stuck else ""
    return Line(columns, f"{MOST_CPU_S:.0f} s", "pass" if cpu_s <= MOST_CPU_S else "missed", note)


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
