"""Two weeks under every cluster manager: CPU time and memory of each replay, in a process of its own, and its parts.

The synthetic trace of 14 days, 2,000 GPUs and about 2,700 GPU jobs, on the Clos of 173 ToRs (2,768 GPUs), Crux deciding
paths and levels. Without contention for GPUs a policy has little to say, so a crowded trace of 5,000 GPU jobs follows,
which overloads the Clos; how often jobs were preempted or moved stands beside it. Target: 5 s on one core.

Beside the CPU seconds stand those of each part, and how often it was at work: the manager acting at each event, placing
jobs (again, where they are preempted or moved), Crux deciding, and finding the rates of a set of jobs. A row
above the target says which of them takes most. A replay that takes two minutes is stopped.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from typing import Final

from benchmarks.common import Line, main, say
from benchmarks.replay import reference_s
from testbed.reproduce.kept_replays import Cell, Result, result_of
from workloads.managers.catalogue import MANAGERS

TITLE: Final = "Replays under every cluster manager"
SCHEDULER: Final = "crux"
DAYS: Final = 14.0
MOST_CPU_S: Final = 5.0
PARTS: Final = {
    "acting": ("events", "managing_s"),
    "placing": ("placed", "placing_s"),
    "deciding": ("decisions", "decision_s"),
    "rates": ("settled", "settling_s"),
}
"""What takes the time: column -> how often, and its CPU seconds, in :data:`testbed.reproduce.kept_replays.WORK`."""
PATIENCE_S: Final = 120.0
"""CPU seconds after which a replay is stopped."""
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
            lines.append(_line(cell, *pool.submit(_timed, cell).result()))
    return lines


def _trace(crowded: bool) -> str:
    return "crowded" if crowded else "standard"


class _Stopped(Exception):
    """A replay took too long; the argument: the share of its time that was over."""


def _timed(cell: Cell) -> tuple[Result | float, float]:
    """The replay, or the share of its time after which it was stopped, and CPU seconds.

    These are of the fixed piece of Python of :mod:`benchmarks.replay`, before and after.
    """
    before_s, began = reference_s(), time.process_time()

    def report(share: float) -> None:
        if time.process_time() - began > PATIENCE_S:
            raise _Stopped(share)

    try:
        found: Result | float = result_of(cell, report)
    except _Stopped as stopped:
        found = float(stopped.args[0])
    return found, 0.5 * (before_s + reference_s())


def _line(cell: Cell, found: Result | float, reference: float) -> Line:
    if isinstance(found, float):
        columns: dict[str, object] = {
            "manager": f"{cell.manager}, {_trace(cell.crowded)}",
            "CPU s": f"over {PATIENCE_S:.0f}",
            "x reference": f"over {PATIENCE_S / reference:.0f}",
        }
        return Line(columns, f"{MOST_CPU_S:.0f} s", "missed", f"stopped when {found:.0%} of its time was over")
    return _whole_line(cell, found, reference)


def _whole_line(cell: Cell, found: Result, reference: float) -> Line:
    cpu_s, manager, work, name = float(found["cpu_s"]), found["manager"], found["work"], cell.manager
    columns = {
        "manager": f"{name}, {_trace(cell.crowded)}",
        "ended": f"{found['finished']} of {found['jobs']}",
        "busy": f"{found['gpu_utilization']:.1%}",
        "preempted": f"{manager['preemptions']:.0f}",
        "moved": f"{manager['migrations']:.0f}",
        **{part: f"{work[count]}: {work[seconds]:.1f} s" for part, (count, seconds) in PARTS.items()},
        "CPU s": round(cpu_s, 1),
        "x reference": round(cpu_s / reference),
        "MiB": round(float(found["peak_bytes"]) / 2**20),
    }
    notes = ["some jobs wait for ever"] if name in NEVER_ENDS and found["finished"] < found["jobs"] else []
    if cpu_s > MOST_CPU_S:
        notes.append(_reason(work))
    return Line(columns, f"{MOST_CPU_S:.0f} s", "pass" if cpu_s <= MOST_CPU_S else "missed", "; ".join(notes))


def _reason(work: Mapping[str, float]) -> str:
    """The part that takes most, and what one time of it takes."""
    part, (count, seconds) = max(PARTS.items(), key=lambda each: work[each[1][1]])
    return f"mostly {part}: {float(f'{1e3 * work[seconds] / max(1, work[count]):.2g}'):g} ms each"


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
