"""From a job's arrival to its rules in force on all switches, on ``clos96`` while its jobs run.

Confirmed by barrier, and followed by the packets. Targets: median under 250 ms on every datapath of the machine, and on
``nftables`` no more than on ``userspace``; 300 ms on ``clos1024``. The jobs of a bundled scenario arrive one after the
other, the first at once and the others while those before them send. Two orders, so that the largest job is once the
first and once the last to come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

from benchmarks.common import Line, Run, Scenario, available_datapaths, bundled, doubts_of, judged, main, run
from topologies.datapath import Datapath

TITLE: Final = "From a job's arrival to its rules in force on all switches"
TARGET_S: Final = 0.25
LARGE_TARGET_S: Final = 0.3
GAP_S: Final = 2.0
"""Undilated seconds between two arrivals: each finds the ones before it iterating."""
SCALE: Final = {"bandwidth": 32_000, "time": 2}
"""Of every datapath alike: what the slowest carries."""
LARGE_SCALE: Final = {"bandwidth": 120_000, "time": 4}
LARGE_ARRIVALS: Final = 3
MEASURE: Final = {"iterations": 1, "warmup": 0, "time_limit": "60s"}


def clos96(datapath: Datapath, largest_last: bool) -> Scenario:
    """The jobs of ``clos96``, one after the other."""
    made = bundled("clos96")
    jobs = list(reversed(made["jobs"])) if largest_last else made["jobs"]
    late = [{**job, "start": f"{GAP_S * position}s"} for position, job in enumerate(jobs)]
    return {**made, "name": "arrivals", "jobs": late, "measure": MEASURE, "scale": SCALE, "datapath": datapath}


def clos1024() -> Scenario:
    """The jobs of ``clos1024``, of which the last few come while the others run."""
    made = bundled("clos1024")
    early, late = made["jobs"][:-LARGE_ARRIVALS], made["jobs"][-LARGE_ARRIVALS:]
    jobs = [*early, *({**job, "start": f"{GAP_S * (1 + position)}s"} for position, job in enumerate(late))]
    made = {**made, "name": "arrivals-1024", "jobs": jobs, "measure": MEASURE}
    return {**made, "scale": LARGE_SCALE, "datapath": "nftables"}


def confirmed(made: Run) -> list[tuple[str, float]]:
    """(cause, seconds) of every arrival that met running jobs."""
    rows = [row for row in made.record.decisions if row.cause.startswith("arrival")]
    return [(row.cause, row.confirmed_s) for row in rows if row.time_s > 0.0]


def measure(quick: bool) -> list[Line]:
    """Both orders under both schedulers on each datapath, then ``clos1024``; ``quick`` takes crux, the largest last."""
    orders, schedulers = ((True,), ("crux",)) if quick else ((False, True), ("crux", "ecmp"))
    lines: list[Line] = []
    for scheduler in schedulers:
        medians: dict[Datapath, float] = {}
        of_scheduler: list[Run] = []
        for datapath in reversed(available_datapaths()):
            runs = [run(clos96(datapath, order), scheduler) for order in orders]
            found, medians[datapath] = _rows({"fabric": "clos96", "datapath": datapath, "scheduler": scheduler}, runs)
            lines += found
            of_scheduler += runs
        lines += _compared(scheduler, medians, of_scheduler)
    if "nftables" in available_datapaths():
        made = run(clos1024(), "crux")
        large, _ = _rows({"fabric": "clos1024", "datapath": "nftables", "scheduler": "crux"}, [made], LARGE_TARGET_S)
        lines += large
    return lines


def _rows(columns: Mapping[str, Any], runs: Sequence[Run], target_s: float = TARGET_S) -> tuple[list[Line], float]:
    """A row per arrival, and one of their median; that median in seconds."""
    seen = [entry for made in runs for entry in confirmed(made)]
    middle = median(seconds for _, seconds in seen)
    lines = [Line({**columns, "arrival": cause, "in force ms": round(1e3 * seconds)}) for cause, seconds in seen]
    summary = {**columns, "arrival": f"median of {len(seen)}", "in force ms": round(1e3 * middle)}
    outcome = judged(middle < target_s, *runs)
    return [*lines, Line(summary, f"< {1e3 * target_s:.0f} ms", outcome, doubts_of(*runs))], middle


def _compared(scheduler: str, medians: Mapping[Datapath, float], runs: Sequence[Run]) -> list[Line]:
    """Whether ``nftables`` takes no longer than ``userspace``, where there are both."""
    if not {"nftables", "userspace"} <= medians.keys():
        return []
    ratio = medians["nftables"] / medians["userspace"]
    columns = {"fabric": "clos96", "datapath": "nftables / userspace", "scheduler": scheduler, "in force ms": ratio}
    return [Line(columns, "<= 1", judged(ratio <= 1.0, *runs), doubts_of(*runs))]


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
