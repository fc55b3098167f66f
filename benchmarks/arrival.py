"""From a job's arrival to its rules confirmed by barrier on all switches, on ``clos96`` while its jobs run.

Target: median under 250 ms. The jobs of the bundled scenario arrive one after the other, the first
at once and the others while those before them send. Two orders, so that the largest job is once
the first and once the last to come.
"""

from __future__ import annotations

from statistics import median
from typing import Final

from benchmarks.common import Line, Run, bundled, doubts_of, judged, main, run

TITLE: Final = "clos96: from a job's arrival to its rules confirmed on all switches"
TARGET_S: Final = 0.25
GAP_S: Final = 2.0
"""Undilated seconds between two arrivals: each finds the ones before it iterating."""


def _run(scheduler: str, largest_last: bool) -> Run:
    scenario = bundled("clos96")
    jobs = list(reversed(scenario["jobs"])) if largest_last else scenario["jobs"]
    late = [{**job, "start": f"{GAP_S * position}s"} for position, job in enumerate(jobs)]
    measure = {"iterations": 1, "warmup": 0, "time_limit": "60s"}
    return run({**scenario, "name": "arrivals", "jobs": late, "measure": measure}, scheduler)


def _confirmed(made: Run) -> list[tuple[str, float]]:
    """(cause, seconds) of every arrival but the first, which met an idle network."""
    return [(row.cause, row.confirmed_s) for row in made.record.decisions if row.cause.startswith("arrival")][1:]


def measure(quick: bool) -> list[Line]:
    """Both orders under both schedulers; ``quick`` takes crux with the largest job last."""
    lines: list[Line] = []
    for scheduler in ("crux",) if quick else ("crux", "ecmp"):
        runs = [_run(scheduler, largest_last) for largest_last in ((True,) if quick else (False, True))]
        seen = [entry for made in runs for entry in _confirmed(made)]
        lines += [_row(scheduler, cause, seconds) for cause, seconds in seen]
        middle = median(seconds for _, seconds in seen)
        columns = {"scheduler": scheduler, "arrival": f"median of {len(seen)}", "confirmed ms": round(1e3 * middle)}
        lines.append(Line(columns, "< 250 ms", judged(middle < TARGET_S, *runs), doubts_of(*runs)))
    return lines


def _row(scheduler: str, cause: str, seconds: float) -> Line:
    return Line({"scheduler": scheduler, "arrival": cause, "confirmed ms": round(1e3 * seconds)})


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
