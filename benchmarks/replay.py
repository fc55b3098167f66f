"""Replays of two weeks at flow level: CPU time and memory, how both grow, and what the jump over iterations costs.

* Crux over 14 days of a synthetic trace of 5,000 GPU jobs on the Clos of 173 ToRs (2,768 GPUs), each run in a
  process of its own, median of three. Target: 15 s on one core, 2 GiB. Beside it the CPU time over that of a fixed
  piece of Python that the same process runs before and after: this ratio carries over to other machines.
* The same with proportionally more jobs on 2,768, 11,072 and 55,360 GPUs, one day, for each placement of the trace
  experiments, median of three. Target: CPU seconds per simulated job-hour grow no faster than log n with the running
  jobs; 20 times the jobs on the first free GPUs, run once: 10 minutes.
* A day with the jump and with every iteration stepped through. Target: utilisations within 0.1 point.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import log
from multiprocessing import get_context
from typing import Final, TypeVar

from benchmarks.common import Line, Outcome, main, percent, say
from controller.schedulers.registry import create
from testbed.engines.replay.inputs import TraceJobs, clos_of_the_paper, requests_of
from testbed.engines.replay.manager_adapter import ManagedPlacing
from testbed.engines.replay.replay import Replay
from workloads.managers.registry import manager
from workloads.traces.synthetic import lingjun_like
from workloads.traces.trace import window

TITLE: Final = "Replays at flow level"
DAY_S: Final = 86400.0
DAYS: Final = 14.0
JOBS: Final = 5000
GPUS: Final = 2000
REPEATS: Final = 3
MOST_CPU_S: Final = 15.0
MOST_BYTES: Final = 2 * 2**30
GROWTH: Final = {"hived": (1, 4, 20), "muri": (1, 4, 20), "none": (1, 4)}
LARGEST: Final = 20
MOST_LARGEST_S: Final = 600.0
"""Multiples of the Clos and of the jobs, by placement: from where jobs share fewest links to where they share most.
With the first free GPUs 20 times the jobs are one group, so that has a target of its own."""
GROWTH_DAYS: Final = 1.0
CUT_DAYS: Final = 1.0
MOST_POINTS: Final = 0.1
SEED: Final = 1

Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Cost:
    """What a replay took, and found."""

    cpu_s: float
    reference_s: float
    peak_bytes: float
    utilization: float
    job_hours: float
    mean_jobs: float
    jobs: int


def replay(scale: int, days: float, from_day: float = 0.0, jump: bool = True, placement: str = "none") -> Cost:
    """Replay ``days`` of a trace with ``scale`` times the jobs on ``scale`` times the fabric, Crux deciding."""
    fabric = clos_of_the_paper(scale)
    drawn = lingjun_like(SEED, GPUS * scale, JOBS * scale, DAYS, gpu_share=1.0, keep_peaks=False)
    trace = window(drawn, from_day * DAY_S, (from_day + days) * DAY_S)
    jobs = TraceJobs(fabric)
    placing = ManagedPlacing(manager(placement), fabric, jobs.stage_times)
    before_s = reference_s()
    began = time.process_time()
    made = Replay(
        fabric, create("crux"), placing, requests_of(trace, SEED), jobs.build, until_s=days * DAY_S, jump=jump
    ).run()
    cpu_s = time.process_time() - began
    mean_jobs = float(made.series.means()[:, 0].mean())
    peak = 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reference = 0.5 * (before_s + reference_s())
    return Cost(
        cpu_s, reference, peak, made.gpu_utilization, mean_jobs * made.span_s / 3600, mean_jobs, len(trace.jobs)
    )


def reference_s() -> float:
    """CPU seconds of a fixed piece of Python: what this machine, in this minute, makes of the same work."""
    began = time.process_time()
    places: dict[int, int] = {}
    for number in range(1_000_000):
        places[number * 7919 % 10_007] = number
    return time.process_time() - began


def alone(make: Callable[..., Made], *arguments: object) -> Made:
    """Call ``make`` in a process of its own, so that its memory is its own."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(make, *arguments).result()


def measure(quick: bool) -> list[Line]:
    """All three; ``quick`` takes shorter cuts and no growth."""
    days = 1.0 if quick else DAYS
    lines = [_whole(days, 1 if quick else REPEATS)]
    if not quick:
        for placement, scales in GROWTH.items():
            lines += _growth(placement, scales)
        lines.append(_largest())
    return [*lines, _jump()]


def _whole(days: float, repeats: int) -> Line:
    cost = _median(repeats, f"{days:g} days", 1, days)
    held = cost.cpu_s <= MOST_CPU_S and cost.peak_bytes <= MOST_BYTES
    return Line(_columns(f"{days:g} days, Crux", cost), f"{MOST_CPU_S:.0f} s, 2 GiB", _judged(held))


def _median(repeats: int, what: str, *arguments: object) -> Cost:
    """The replay of ``arguments`` that took the median of CPU time."""
    made = []
    for number in range(1, repeats + 1):
        say(f"{what}, {number} of {repeats}")
        made.append(alone(replay, *arguments))
    return sorted(made, key=lambda cost: cost.cpu_s)[repeats // 2]


def _columns(what: str, cost: Cost) -> dict[str, object]:
    return {
        "what": what,
        "jobs": cost.jobs,
        "mean running": round(cost.mean_jobs, 1),
        "GPU utilisation": f"{cost.utilization:.2%}",
        "CPU s": round(cost.cpu_s, 1),
        "x reference": round(cost.cpu_s / cost.reference_s),
        "MiB": round(cost.peak_bytes / 2**20),
        "ms per job-hour": round(1e3 * cost.cpu_s / cost.job_hours, 2),
    }


def _growth(placement: str, scales: Sequence[int]) -> Sequence[Line]:
    found = []
    for scale in scales:
        what = f"growth: {scale} times the jobs and GPUs, placed by {placement}"
        found.append((scale, _median(REPEATS, what, scale, GROWTH_DAYS, 7.0, True, placement)))
    first = found[0][1]
    lines = []
    for scale, cost in found:
        # n log n in all is log n per job: so much more may a job-hour cost.
        allowed = log(cost.mean_jobs) / log(first.mean_jobs)
        grown = (cost.cpu_s / cost.job_hours) / (first.cpu_s / first.job_hours)
        columns = {**_columns(f"{scale} x, {GROWTH_DAYS:g} day, {placement}", cost), "per job-hour": f"x {grown:.2f}"}
        lines.append(Line(columns, f"x {allowed:.2f}", _judged(grown <= max(allowed, 1.0))))
    return lines


def _largest() -> Line:
    say(f"growth: {LARGEST} times the jobs and GPUs, placed by none")
    cost = alone(replay, LARGEST, GROWTH_DAYS, 7.0, True, "none")
    columns = _columns(f"{LARGEST} x, {GROWTH_DAYS:g} day, none", cost)
    return Line(columns, f"{MOST_LARGEST_S:.0f} s", _judged(cost.cpu_s <= MOST_LARGEST_S))


def _jump() -> Line:
    say("a day, every iteration stepped through")
    jumped, stepped = (alone(replay, 1, CUT_DAYS, 7.0, jump) for jump in (True, False))
    points = 100 * (jumped.utilization - stepped.utilization)
    columns = {
        **_columns("a day, stepped through", stepped),
        "points apart": f"{points:+.3f}",
        "jump saves": percent(1 - jumped.cpu_s / stepped.cpu_s, 0),
    }
    return Line(columns, f"{MOST_POINTS} points", _judged(abs(points) <= MOST_POINTS))


def _judged(holds: bool) -> Outcome:
    return "pass" if holds else "missed"


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
