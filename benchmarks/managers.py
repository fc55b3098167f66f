"""Two weeks under every cluster manager: CPU time and memory of each replay, in a process of its own, and its parts.

The synthetic trace of 14 days, 2,000 GPUs and about 2,700 GPU jobs, on the Clos of 173 ToRs (2,768 GPUs), Crux deciding
paths and levels. Without contention for GPUs a policy has little to say, so a crowded trace of 5,000 GPU jobs follows,
which overloads the Clos; how often jobs were preempted or moved stands beside it. Target: 5 s on one core.

Beside the CPU seconds stand those of each part, and how often it was at work: the manager acting at each event, placing
jobs (again, where they are preempted or moved), Crux deciding, and settling to rates. A row above the target says which
of them takes most. A replay that takes two minutes is stopped.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import product
from typing import Final

from benchmarks.common import Line, main, say
from benchmarks.replay import alone, reference_s
from testbed.reproduce.kept_replays import Cell, Result, result_of
from workloads.managers.catalogue import MANAGERS

TITLE: Final = "Replays under every cluster manager"
SCHEDULER: Final = "crux"
DAYS: Final = 14.0
MOST_CPU_S: Final = 5.0
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
        lines.append(_line(cell, *alone(_timed, cell)))
    return lines


def _trace(crowded: bool) -> str:
    return "crowded" if crowded else "standard"


class _Stopped(Exception):
    """A replay took too long; the argument: the share of its time that was over."""


def _timed(cell: Cell) -> tuple[Result, float]:
    """The replay, and CPU seconds of the fixed piece of Python of :mod:`benchmarks.replay` before and after.

    Of a replay that was stopped there is only ``stopped``, the share of its time that was over.
    """
    before_s, began = reference_s(), time.process_time()

    def report(share: float) -> None:
        if time.process_time() - began > PATIENCE_S:
            raise _Stopped(share)

    try:
        found = result_of(cell, report)
    except _Stopped as stopped:
        found = {"stopped": stopped.args[0], "cpu_s": time.process_time() - began}
    return found, 0.5 * (before_s + reference_s())


def _line(cell: Cell, found: Result, reference: float) -> Line:
    cpu_s = float(found["cpu_s"])
    columns = {
        "manager": f"{cell.manager}, {_trace(cell.crowded)}",
        **({} if "stopped" in found else _columns(found)),
        "CPU s": round(cpu_s, 1),
        "x reference": round(cpu_s / reference),
    }
    held = cpu_s <= MOST_CPU_S and "stopped" not in found
    return Line(columns, f"{MOST_CPU_S:.0f} s", "pass" if held else "missed", "; ".join(_notes(cell, found)))


def _columns(found: Result) -> dict[str, object]:
    manager = found["manager"]
    return {
        "ended": f"{found['finished']} of {found['jobs']}",
        "busy": f"{found['gpu_utilization']:.1%}",
        "preempted": f"{manager['preemptions']:.0f}",
        "moved": f"{manager['migrations']:.0f}",
        **{part: f"{work['times']}: {work['cpu_s']:.1f} s" for part, work in found["work"].items()},
        "sets of rates": found["settled"],
        "MiB": round(float(found["peak_bytes"]) / 2**20),
    }


def _notes(cell: Cell, found: Result) -> Iterator[str]:
    """Why a replay takes long: where it was stopped, or the part that takes most, and what one time of it takes."""
    if "stopped" in found:
        yield f"stopped when {found['stopped']:.0%} of its time was over"
        return
    if cell.manager in NEVER_ENDS and found["finished"] < found["jobs"]:
        yield "some jobs wait for ever"
    if found["cpu_s"] > MOST_CPU_S:
        part, work = max(found["work"].items(), key=lambda each: float(each[1]["cpu_s"]))
        yield f"mostly {part}: {1e3 * work['cpu_s'] / work['times']:.2f} ms each"


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
