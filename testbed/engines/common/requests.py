"""Requests of serving jobs: when each got its first token, its cache arrived and its last token came. Pure.

Hosts report when a prefill ended and when a cache had arrived. What decode instances then do sends nothing, so it
follows from that (:mod:`workloads.serving.decoding`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from testbed.engines.common.iterations import HostIteration, numbered
from testbed.experiment.experiment import Experiment
from testbed.results.record import IterationRow, RequestRow, RunRecord
from topologies.fabric import Fabric
from workloads.iteration.protocol import PhaseTimes
from workloads.job import Job, Phase
from workloads.serving.decoding import Waiting, decode
from workloads.serving.served import Served, cache_phase

Spans = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Answered:
    """Requests, and GPU of a decode instance -> when it decoded."""

    rows: tuple[RequestRow, ...]
    busy: Mapping[str, Spans]


def with_requests(
    record: RunRecord, reports: Iterable[HostIteration], experiment: Experiment, origin: float
) -> RunRecord:
    """Return ``record`` with its requests, and decode instances busy while they decode; times from ``origin``."""
    answered = answered_requests(reports, experiment, origin)
    return replace(record, requests=answered.rows, iterations=with_decoding(record.iterations, answered.busy))


def answered_requests(reports: Iterable[HostIteration], experiment: Experiment, origin: float) -> Answered:
    """Return the requests of all serving jobs whose round is over; times undilated, from ``origin``."""
    own: dict[str, list[HostIteration]] = {job.name: [] for job in experiment.jobs if job.served is not None}
    for report in reports if own else ():
        if report.job in own:
            own[report.job].append(report)
    found = [_answered(job, job.served, own[job.name], experiment, origin) for job in experiment.jobs if job.served]
    rows = tuple(row for each in found for row in each.rows)
    return Answered(rows, {gpu: spans for each in found for gpu, spans in each.busy.items()})


def with_decoding(rows: Iterable[IterationRow], busy: Mapping[str, Spans]) -> tuple[IterationRow, ...]:
    """Return ``rows`` in which the GPUs of ``busy`` (GPU -> spans in seconds, in order) compute meanwhile."""
    if not busy:
        return tuple(rows)
    places = dict.fromkeys(busy, 0)
    found = []
    for row in rows:
        if row.gpu in busy:
            spans = busy[row.gpu]
            while places[row.gpu] < len(spans) and spans[places[row.gpu]][1] <= row.start_s:
                places[row.gpu] += 1
            row = _decoding(row, spans, places[row.gpu])
        found.append(row)
    return tuple(found)


def _decoding(row: IterationRow, spans: Spans, first: int) -> IterationRow:
    """The row with the compute of ``spans`` from the ``first`` on, which ends after the row begins."""
    compute_s = 0.0
    for place in range(first, len(spans)):
        begin, end = spans[place]
        if begin >= row.end_s:
            break
        compute_s += min(end, row.end_s) - max(begin, row.start_s)
    idle_s = row.end_s - row.start_s - compute_s
    exposed_s = min(row.exposed_s, idle_s)
    return replace(row, compute_s=compute_s, exposed_s=exposed_s, straggler_s=min(row.straggler_s, idle_s - exposed_s))


def _answered(
    job: Job, served: Served, reports: Sequence[HostIteration], experiment: Experiment, origin: float
) -> Answered:
    """The requests of ``job`` whose whole round is over, and by GPU when it decoded."""
    arrived = _arrived(job, served, reports, experiment, origin)
    begun_s = min((report.phases[0].start - report.waited for report in reports), default=origin)
    begun_s = (begun_s - origin) / experiment.scale.time
    by_instance: dict[int, list[int]] = defaultdict(list)
    for number in arrived:
        by_instance[number % served.decode_instances].append(number)
    rows: dict[int, RequestRow] = {}
    busy: dict[str, Spans] = {}
    for instance, numbers in by_instance.items():
        waiting = [
            Waiting(*arrived[number], served.requests[number].prompt, served.requests[number].output)
            for number in numbers
        ]
        decoded = decode(waiting, served.decode)
        for number, each, last_s in zip(numbers, waiting, decoded.last_token_s, strict=True):
            rows[number] = RequestRow(
                job=job.name,
                request=number,
                iteration=number // served.slots,
                prompt=each.prompt,
                output=each.output,
                arrival_s=begun_s + served.requests[number].arrival_s,
                prefill_s=served.prefill_s[number],
                first_token_s=each.first_token_s,
                cache_s=each.ready_s,
                last_token_s=last_s,
            )
        for gpu in _gpus(job, job.phases[cache_phase(instance) + 1]):
            busy[gpu] = decoded.busy
    return Answered(tuple(rows[number] for number in sorted(rows)), busy)


def _gpus(job: Job, phase: Phase) -> tuple[str, ...]:
    return tuple(job.gpus[place] for place in phase.members)


def _arrived(
    job: Job, served: Served, reports: Sequence[HostIteration], experiment: Experiment, origin: float
) -> dict[int, tuple[float, float]]:
    """Request -> when its first token came and its cache had arrived, undilated seconds from ``origin``."""
    iterations: dict[int, dict[str, Mapping[int, PhaseTimes]]] = defaultdict(dict)
    for report in reports:
        iterations[report.iteration][report.host] = dict(numbered(report.phases))
    hosts = {experiment.fabric.host_of_gpu[gpu] for gpu in job.gpus}
    dilation = experiment.scale.time
    found = {}
    for iteration in sorted(iterations):
        by_host = iterations[iteration]
        if by_host.keys() != hosts or iteration >= served.iterations:
            continue
        for slot in range(served.slots):
            number = cache_phase(slot)
            senders = _hosts(job, job.phases[number], experiment.fabric)
            (receiver,) = _hosts(job, job.phases[number + 1], experiment.fabric)
            first = max(by_host[host][number].ready for host in senders)
            there = max((first, *by_host[receiver][number].arrivals))
            found[iteration * served.slots + slot] = (first - origin) / dilation, (there - origin) / dilation
    return found


def _hosts(job: Job, phase: Phase, fabric: Fabric) -> list[str]:
    return list(dict.fromkeys(fabric.host_of_gpu[gpu] for gpu in _gpus(job, phase)))
