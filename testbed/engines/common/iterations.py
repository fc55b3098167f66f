"""From what workers and counters reported to rows in the scenario's units. Pure.

Idle time is split by cause after the fact: between the end of a GPU's compute and the end of the
phase it waits for a peer as long as some host of the job was not yet ready to communicate, and
for communication from then on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from testbed.experiment.experiment import Experiment
from testbed.results.record import IterationRow, Window
from workloads.iteration.protocol import PhaseTimes
from workloads.iteration.time_shift import TimeShift


@dataclass(frozen=True, slots=True)
class HostIteration:
    """One iteration of a job on one host, as its worker reported it; ``waited`` seconds for its phase before that."""

    job: str
    host: str
    gpus: tuple[str, ...]
    iteration: int
    phases: tuple[PhaseTimes, ...]
    late: float
    waited: float = 0.0


def iteration_rows(
    reports: Iterable[HostIteration], experiment: Experiment, origin: float, disturbed: Sequence[tuple[float, float]]
) -> tuple[IterationRow, ...]:
    """A row per GPU of every iteration that all hosts of its job ended; times undilated, from ``origin``."""
    by_iteration: dict[tuple[str, int], list[HostIteration]] = defaultdict(list)
    for report in reports:
        by_iteration[report.job, report.iteration].append(report)
    hosts = {job.name: len({experiment.fabric.host_of_gpu[gpu] for gpu in job.gpus}) for job in experiment.jobs}
    place = {job.name: number for number, job in enumerate(experiment.jobs)}
    rows: list[IterationRow] = []
    for (job, _), group in sorted(by_iteration.items(), key=lambda item: (place[item[0][0]], item[0][1])):
        if len(group) == hosts[job]:
            rows.extend(_rows_of_iteration(group, experiment.scale.time, origin, disturbed))
    return tuple(rows)


def _rows_of_iteration(
    group: Sequence[HostIteration], dilation: float, origin: float, disturbed: Sequence[tuple[float, float]]
) -> Iterable[IterationRow]:
    all_ready: dict[int, float] = {}
    for report in group:
        for number, phase in numbered(report.phases):
            all_ready[number] = max(all_ready.get(number, phase.ready), phase.ready)
    begin = min(report.phases[0].start - report.waited for report in group)
    finish = max(report.phases[-1].end for report in group)
    hit = any(start < finish and begin < end for start, end in disturbed)
    for report in group:
        for position, gpu in enumerate(report.gpus):
            compute, communication, exposed, straggler = _gpu_times(report, position, all_ready)
            yield IterationRow(
                job=report.job,
                gpu=gpu,
                iteration=report.iteration,
                start_s=(report.phases[0].start - report.waited - origin) / dilation,
                compute_s=compute / dilation,
                communication_s=communication / dilation,
                exposed_s=exposed / dilation,
                straggler_s=straggler / dilation,
                end_s=(report.phases[-1].end - origin) / dilation,
                disturbed=hit,
            )


def numbered(phases: Sequence[PhaseTimes]) -> Iterator[tuple[int, PhaseTimes]]:
    """Each of a host's phases with its place in the job's."""
    return ((index if phase.number < 0 else phase.number, phase) for index, phase in enumerate(phases))


def _gpu_times(
    report: HostIteration, position: int, all_ready: Mapping[int, float]
) -> tuple[float, float, float, float]:
    """(compute, communication, exposed, straggler) seconds of one GPU, summed over the phases."""
    compute = communication = exposed = straggler = 0.0
    for number, phase in numbered(report.phases):
        peers_ready = all_ready[number]
        busy = phase.compute[position]
        computed = phase.start + busy
        idle = max(0.0, phase.end - computed)
        waiting = min(idle, max(0.0, peers_ready - computed))
        compute += min(busy, phase.end - phase.start)
        communication += max(0.0, phase.communication_end - phase.ready)
        straggler += waiting
        exposed += idle - waiting
    return compute, communication, exposed, straggler


def late_spans(reports: Iterable[HostIteration], allowed_s: float) -> list[tuple[float, float]]:
    """When iterations ran, on the machine's clock, in which a compute pause ended more than ``allowed_s`` late."""
    return [(report.phases[0].start, report.phases[-1].end) for report in reports if report.late > allowed_s]


def lateness_at_first(reports: Iterable[HostIteration], experiment: Experiment) -> float:
    """The largest lateness, in seconds of the machine's clock, of the jobs that begin together, until they are warm."""
    together = {job.name for job in experiment.jobs if job.start_s <= 0.0}
    warmup = max(1, experiment.measure.warmup)
    return max((each.late for each in reports if each.iteration < warmup and each.job in together), default=0.0)


def late_shares(reports: Iterable[HostIteration]) -> dict[str, float]:
    """Job -> share of its time that late pauses added: of each iteration the longest, on the latest host."""
    late: dict[tuple[str, int], float] = defaultdict(float)
    took: dict[tuple[str, int], float] = defaultdict(float)
    for report in reports:
        which = report.job, report.iteration
        late[which] = max(late[which], report.late)
        took[which] = max(took[which], report.phases[-1].end - report.phases[0].start)
    late_s, took_s = _by_job(late), _by_job(took)
    return {job: late_s[job] / took_s[job] for job in took_s}


def _by_job(seconds: Mapping[tuple[str, int], float]) -> dict[str, float]:
    sums: dict[str, float] = defaultdict(float)
    for (job, _), value in seconds.items():
        sums[job] += value
    return sums


def overlaps(report: HostIteration, spans: Sequence[tuple[float, float]]) -> bool:
    """Whether any of ``spans`` touches the iteration."""
    begin, finish = report.phases[0].start, report.phases[-1].end
    return any(start < finish and begin < end for start, end in spans)


def phase_errors(reports: Iterable[HostIteration], time_shift: TimeShift) -> list[float]:
    """Seconds between the phase of a shifted job and the begin of the iterations that waited for it.

    All in seconds of the machine's clock; positive is late.
    """
    begins = [report.phases[0].start for report in reports if report.waited > 0.0]
    anchor, shift, period = time_shift.anchor, time_shift.shift, time_shift.period
    return [(begin - anchor - shift + period / 2) % period - period / 2 for begin in begins]


def windows(rows: Sequence[IterationRow], experiment: Experiment) -> dict[str, Window]:
    """Job -> its measured span, from the first iteration after warm-up to the end of the last whole one."""
    spans: dict[str, Window] = {}
    for job in experiment.jobs:
        measured = [row for row in rows if row.job == job.name and row.iteration >= experiment.measure.warmup]
        if measured:
            spans[job.name] = Window(min(row.start_s for row in measured), max(row.end_s for row in measured))
    return spans


def undisturbed_iterations(rows: Sequence[IterationRow], warmup: int) -> Mapping[str, int]:
    """Job -> how many of its iterations after warm-up ran undisturbed on all hosts."""
    good: dict[str, set[int]] = defaultdict(set)
    for row in rows:
        if row.iteration >= warmup and not row.disturbed:
            good[row.job].add(row.iteration)
    return {job: len(iterations) for job, iterations in good.items()}
