"""What the jump over iterations costs in accuracy, apart from chaos: jump against exact stepping at a fixed placement.

Days of the synthetic trace of 5,000 GPU jobs, Crux deciding, with 1, 4 and 20 times the jobs and GPUs. Each day is
replayed three times: with the jump; with every iteration stepped through and jobs placed as they end there; and stepped
through with each job started when and where it started in the first. The last differs by the rates alone (bias); the
second also by placements that diverge because jobs end at slightly different times (chaos).
Target: utilisations within 0.1 point at the fixed placement.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.common import Line, parser_of, report, say
from benchmarks.replay import DAY_S, DAYS, GPUS, JOBS, MOST_POINTS, SEED, alone
from controller.schedulers.registry import create
from testbed.engines.replay.fixed_placement import RecordingPlacing, recorded_manager
from testbed.engines.replay.inputs import TraceJobs, clos_of_the_paper, requests_of
from testbed.engines.replay.replay import Replay
from workloads.managers.policies.recorded import RecordedStart
from workloads.managers.registry import manager
from workloads.traces.synthetic import lingjun_like
from workloads.traces.trace import window

TITLE: Final = "Jump against exact stepping at a fixed placement"
CASES: Final = ((1, "none"), (4, "none"), (20, "muri"))
"""Multiples of the jobs and GPUs, and the placement. On the first free GPUs 20 times the jobs are one group, and a day
takes hours."""
FIRST_DAYS: Final = (4.0, 7.0, 9.0)
"""Days of the trace."""


@dataclass(frozen=True, slots=True)
class Part:
    """``days`` of the trace from ``first_day`` on, with ``scale`` times the jobs and GPUs."""

    scale: int
    placement: str
    first_day: float
    days: float


@dataclass(frozen=True, slots=True)
class Found:
    """A replay's utilisation (0 to 1), its CPU seconds, jobs, and what it started when and where."""

    utilization: float
    allocated_gpu_s: float
    cpu_s: float
    jobs: int
    starts: tuple[RecordedStart, ...] = ()


def replayed(part: Part, jump: bool, starts: Sequence[RecordedStart] | None = None) -> Found:
    """Replay ``part``; with ``starts`` at that placement, else as its manager places jobs, which is recorded."""
    fabric = clos_of_the_paper(part.scale)
    drawn = lingjun_like(SEED, GPUS * part.scale, JOBS * part.scale, DAYS, gpu_share=1.0, keep_peaks=False)
    trace = window(drawn, part.first_day * DAY_S, (part.first_day + part.days) * DAY_S)
    placed_by = manager(part.placement) if starts is None else recorded_manager(starts)
    jobs = TraceJobs(fabric)
    placing = RecordingPlacing(placed_by, fabric, jobs.stage_times)
    began = time.process_time()
    requests, until_s = requests_of(trace, SEED), part.days * DAY_S
    done = Replay(fabric, create("crux"), placing, requests, jobs.build, until_s=until_s, jump=jump).run()
    cpu_s = time.process_time() - began
    return Found(done.gpu_utilization, done.totals.allocated, cpu_s, len(trace.jobs), placing.starts)


def line_of(part: Part, free: bool) -> Line:
    """The three replays of ``part``; without the second unless ``free``."""
    name = f"{part.scale} x, {part.placement}, day {part.first_day:g}"
    say(f"{name}: jump")
    jumped = alone(replayed, part, True)
    say(f"{name}: stepped through at the same placement ({jumped.cpu_s:.0f} CPU s with the jump)")
    fixed = alone(replayed, part, False, jumped.starts)
    apart = points(jumped, fixed)
    say(f"{name}: {jumped.utilization:.3%} and {fixed.utilization:.3%}, {apart:+.3f} points ({fixed.cpu_s:.0f} CPU s)")
    columns: dict[str, object] = {
        "what": f"{name}, {part.days:g} days",
        "jobs": jumped.jobs,
        "jump": f"{jumped.utilization:.3%}",
        "stepped, fixed": f"{fixed.utilization:.3%}",
        "points apart": f"{apart:+.3f}",
        "allocated apart": f"{jumped.allocated_gpu_s / fixed.allocated_gpu_s - 1:+.4%}",
        "CPU s": f"{jumped.cpu_s:.0f}, {fixed.cpu_s:.0f}",
    }
    if free:
        say(f"{name}: stepped through, placed as jobs end there")
        moved = alone(replayed, part, False)
        columns |= {"stepped, free": f"{moved.utilization:.3%}", "apart, free": f"{points(jumped, moved):+.3f}"}
    return Line(columns, f"{MOST_POINTS} points", "pass" if abs(apart) <= MOST_POINTS else "missed")


def points(one: Found, other: Found) -> float:
    """How much more ``one`` utilises GPUs than ``other``, in hundredths."""
    return 100 * (one.utilization - other.utilization)


def main() -> int:
    """Parse the command line, replay, show, and return the exit status."""
    parser = parser_of(TITLE)
    parser.add_argument(
        "--scale", type=int, action="append", help="only this multiple of the jobs and GPUs (repeatable)"
    )
    parser.add_argument("--placement", help="place jobs by this placer instead")
    parser.add_argument("--first-day", type=float, action="append", metavar="D", help="this day (repeatable)")
    parser.add_argument("--days", type=float, default=1.0, metavar="N", help="days from each first day on (default: 1)")
    parser.add_argument("--free", action="store_true", help="step through at free placement as well")
    given = parser.parse_args()
    cases = [(scale, given.placement or placement) for scale, placement in CASES if scale in (given.scale or (scale,))]
    parts = [Part(*case, day, given.days) for case in cases for day in given.first_day or FIRST_DAYS]
    return report(TITLE, [line_of(part, given.free) for part in parts], as_json=given.json)


if __name__ == "__main__":
    raise SystemExit(main())
