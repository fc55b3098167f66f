"""What holds under every cluster manager, in replays of random traces, by jump and by exact stepping.

No GPU is given twice, each job does exactly its work, nobody waits forever unless refused with a reason, and no job is
faster than alone on the GPUs that it had. The last holds to an iteration: a job begins in a phase drawn by the seed.
Some jobs are elastic, some opportunistic, and some fail once or twice. Each trace is replayed again to half its time:
what jobs used until then has to be what the cluster had in use, and no more than there is.
A line per manager; its note names the first violation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import Final

from benchmarks.common import Line, parser_of, report, say
from benchmarks.manager_audit import Books, WatchedManager, books_in_order, waiting_forever, watched
from benchmarks.manager_cases import CASES, Case, RandomJob, random_trace
from controller.schedulers.crux.intensity import profile
from controller.schedulers.registry import create
from testbed.engines.replay.inputs import TraceJobs
from testbed.engines.replay.manager_adapter import ManagedPlacing
from testbed.engines.replay.outcome import Replayed
from testbed.engines.replay.replay import Replay
from testbed.engines.replay.running_job import ReplayRequest
from topologies.clos import clos
from workloads.build import JobSpec, build_jobs
from workloads.managers.account import Account, JobOutcome

TITLE: Final = "Properties of every cluster manager"
TRACES: Final = 30
FABRIC: Final = clos(
    hosts=4, gpus_per_host=4, nics_per_host=2, tors=4, aggregations=2, port_rate=100e9, fabric_rate=100e9
)
MODELS: Final = ("crux-bert", "crux-resnet", "crux-gpt")
SCHEDULER: Final = "crux"
ROUNDING: Final = 1e-6
"""Iterations; and a share of the GPU time."""


@dataclass(frozen=True)
class Checked:
    """A replay and what is wrong with it. ``deadlocked``: jobs that hold some of their GPUs at its end.

    ``off``: the most iterations that a job made too many or too few; ``ahead``: the most iterations, for each time that
    it was put on GPUs, that a job made and could not have made alone.
    """

    problems: tuple[str, ...]
    jobs: int
    refused: int
    deadlocked: int
    off: float
    ahead: float


def request_of(number: int, job: RandomJob) -> ReplayRequest:
    """Return a random job as a replay takes it, of one of :data:`MODELS`."""
    model = MODELS[number % len(MODELS)]
    fewest, most = job.elastic or (None, None)
    return ReplayRequest(
        job.name,
        job.submit_s,
        job.duration_s,
        job.gpus,
        model,
        job.virtual_cluster,
        min_gpus=fewest,
        max_gpus=most,
        opportunistic=job.opportunistic,
        attempts=job.attempts,
    )


class _Placing(ManagedPlacing):
    """Keeps after how many actions of ``seen``, and when, an attempt of which job ended."""

    def __init__(self, seen: WatchedManager) -> None:
        super().__init__(seen, FABRIC, _JOBS.stage_times)
        self._seen = seen
        self.ends: list[tuple[int, float, str]] = []

    def ended(self, request: ReplayRequest, account: Account, now_s: float) -> bool:
        self.ends.append((len(self._seen.seen), now_s, request.name))
        return super().ended(request, account, now_s)


def _replayed(placing: ManagedPlacing, requests: Sequence[ReplayRequest], jump: bool, until_s: float = inf) -> Replayed:
    scheduler = create(SCHEDULER)
    return Replay(
        FABRIC,
        scheduler,
        placing,
        requests,
        _JOBS.build,
        reference_s=_JOBS.reference_s,
        jump=jump,
        until_s=until_s,
    ).run()


def check(case: Case, seed: int, *, jump: bool) -> Checked:
    """Replay the random trace of ``seed`` under a manager, and return what does not hold."""
    requests = [request_of(number, job) for number, job in enumerate(random_trace(seed))]
    seen = watched(case.manager(seed))
    placing = _Placing(seen)
    done = _replayed(placing, requests, jump)
    cut = _replayed(_Placing(watched(case.manager(seed))), requests, jump, 0.5 * done.span_s)
    books = books_in_order(seen.seen, placing.ends)
    waiting = waiting_forever(done.jobs, [each.name for each in requests], placing.refused)
    held = sum(each.holds > 0 for each in done.jobs)
    ended = {each.name: each for each in done.jobs if each.end_s is not None}
    off = {each.name: _off(each, ended[each.name]) for each in requests if each.name in ended}
    ahead = {each.name: _ahead(each, books) for each in requests if each.name in ended}
    problems = [*books.problems, *_of_the_accounts(done), *(f"cut in half: {each}" for each in _of_the_accounts(cut))]
    problems += [f"{name} is {by:+.3g} iterations off" for name, by in off.items() if abs(by) > ROUNDING]
    problems += [f"{name} is {by:.3g} iterations ahead of itself alone" for name, by in ahead.items() if by >= 1.0]
    if waiting and not (case.may_deadlock and held >= 2):
        problems.append(f"{waiting[0]} waits forever")
    how = "jump" if jump else "exact"
    return Checked(
        tuple(f"trace {seed}, {how}: {each}" for each in problems),
        len(requests),
        len(placing.refused),
        held,
        max(map(abs, off.values()), default=0.0),
        max((*ahead.values(), 0.0)),
    )


def _of_the_accounts(done: Replayed) -> Iterator[str]:
    """Where the accounts of the jobs and of the cluster differ, in words."""
    busy, held = (sum(getattr(job, f"{of}_gpu_s") for job in done.jobs) for of in ("busy", "allocated"))
    totals, most = done.totals, done.gpus * done.span_s
    slack = ROUNDING * most
    if abs(busy - totals.busy) > slack:
        yield f"jobs computed for {busy:g} GPU s, the cluster for {totals.busy:g}"
    if totals.allocated > held + slack:  # less where jobs share GPUs
        yield f"jobs held GPUs for {held:g} GPU s, the cluster was allocated for {totals.allocated:g}"
    if not totals.busy - slack <= totals.allocated <= most + slack:
        yield f"allocated for {totals.allocated:g} of {most:g} GPU s, busy for {totals.busy:g}"
    if done.series.means()[:, done.series.columns.index("allocated")].max(initial=0.0) > done.gpus + ROUNDING:
        yield "more GPUs were allocated than there are"


def _off(request: ReplayRequest, outcome: JobOutcome) -> float:
    """Iterations that the GPUs of an ended job have computed beyond what its recorded duration says."""
    compute_s, _ = _JOBS.stage_times(request)
    return outcome.busy_gpu_s / (compute_s * request.gpus) - request.duration_s / _JOBS.reference_s(request)


def _ahead(request: ReplayRequest, books: Books) -> float:
    """Iterations beyond what the job could have made alone on the GPUs that it had, for each time it was put on some.

    A job begins in a phase of its iteration drawn by the seed, so it may be ahead by a part of one.
    """
    mine = [each for each in books.stretches if each.job == request.name]
    alone = sum((each.to_s - each.from_s) / _iteration_s(request.model, each.gpus) * len(each.gpus) for each in mine)
    made = request.duration_s / _JOBS.reference_s(request) * request.gpus
    return (made - alone) / request.gpus / len(mine)


_JOBS: Final = TraceJobs(FABRIC)


@cache
def _iteration_s(model: str, gpus: tuple[str, ...]) -> float:
    """Seconds of an iteration of a job alone on ``gpus``."""
    (job,) = build_jobs([JobSpec("job", model, placement=gpus)], FABRIC)
    return profile(job, FABRIC).iteration_s


def measure(traces: int, names: Sequence[str]) -> list[Line]:
    """Return a line per manager."""
    lines = []
    for name in names:
        say(f"{name}: {traces} traces")
        found = [check(CASES[name], seed, jump=jump) for seed in range(traces) for jump in (True, False)]
        problems = [problem for each in found for problem in each.problems]
        deadlocked = sum(each.deadlocked > 0 for each in found)
        columns = {
            "manager": name,
            "replays": len(found),
            "jobs": sum(each.jobs for each in found),
            "refused": sum(each.refused for each in found),
            "deadlocked": deadlocked,
            "off, at most": max(each.off for each in found),
            "ahead, at most": max(each.ahead for each in found),
            "violations": len(problems),
        }
        note = problems[0] if problems else "jobs that hold GPUs wait forever, and are named" if deadlocked else ""
        lines.append(Line(columns, "0 violations", "missed" if problems else "pass", note))
    return lines


def main() -> int:
    """Parse the command line, check, show, and return the exit status."""
    parser = parser_of(TITLE)
    parser.add_argument("--traces", type=int, default=TRACES, metavar="N", help=f"random traces (default {TRACES})")
    parser.add_argument("--manager", action="append", choices=list(CASES), help="only this one; may be repeated")
    given = parser.parse_args()
    return report(TITLE, measure(given.traces, given.manager or list(CASES)), as_json=given.json)


if __name__ == "__main__":
    raise SystemExit(main())
