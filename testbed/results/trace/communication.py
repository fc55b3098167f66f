"""What jobs send, in a timeline: a slice per collective and host, and arrows from senders to receivers.

A record knows how long each host of a job communicated in an iteration, not when each collective began. So the
slices are an estimate: the job's phases one after the other, compute as long as measured, the measured communication
divided among the phases by their bytes, and the last one ending with the iteration where communication was exposed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from testbed.experiment.experiment import Experiment
from testbed.results.record import IterationRow, RunRecord
from testbed.results.trace.events import Event, Processes, Room, host_and_index, micro, named, numbers
from topologies.fabric import Fabric
from workloads.job import Job, Phase

_FIRST_THREAD: Final = 1_000_001
"""Threads of communication come after those of GPUs."""
_ARROW_END_S: Final = 1e-6
"""An arrow ends this long before the slice does that it points to: at its very end it would point to the next."""

Span = tuple[float, float]


@dataclass(frozen=True)
class _Collective:
    """A phase that communicates: its shares of the iteration's compute and communication, and who sends to whom.

    ``before``: the share of the compute of silent phases since the collective before it; ``sends``: host -> bytes.
    """

    name: str
    before: float
    compute: float
    communication: float
    overlap: float
    background: bool
    sends: Mapping[str, float]
    pairs: tuple[tuple[str, str], ...]


class Communication:
    """The communication of the jobs of a run."""

    def __init__(self, record: RunRecord, experiment: Experiment, processes: Processes) -> None:
        jobs = (*record.jobs_of(experiment.jobs), *(record.managed.stints if record.managed else ()))
        ran = {(row.job, host_and_index(row.gpu)[0]) for row in record.iterations}
        self._collectives = {job.name: _collectives(job, experiment.fabric) for job in jobs}
        threads = {job.name: _FIRST_THREAD + 2 * number for number, job in enumerate(jobs)}
        self._threads = {(job, host): threads[job] for job, host in ran if job in threads}
        self._process = processes.hosts

    def names(self) -> Iterator[Event]:
        """The names of the threads; communication that goes on in the background has a thread of its own."""
        for (job, host), thread in sorted(self._threads.items()):
            kinds = {each.background for each in self._collectives[job]}
            for background in sorted(kinds):
                words = "background communication" if background else "communication"
                yield named("thread_name", f"{job} {words}", self._process[host], thread + background)

    def events(self, rows: Sequence[IterationRow], room: Room) -> Iterator[Event]:
        """Slices and arrows of all iterations, in the order of ``rows``."""
        arrows = numbers()
        for (job, iteration), hosts in _by_iteration(rows, self._threads).items():
            found = [self._spans(row, job) for row in hosts.values()]
            spans = dict(zip(hosts, found, strict=True))
            begin = min(row.start_s for row in hosts.values())
            yield from room.take(begin, self._iteration(job, iteration, spans, arrows))

    def _spans(self, row: IterationRow, job: str) -> list[Span]:
        return spans_of(row, self._collectives[job])

    def _iteration(
        self, job: str, iteration: int, spans: Mapping[str, Sequence[Span]], arrows: Iterator[int]
    ) -> Iterator[Event]:
        for number, collective in enumerate(self._collectives[job]):
            at = {host: (self._place(job, host, collective), own[number]) for host, own in spans.items()}
            arguments = {"job": job, "iteration": iteration}
            for host, (place, span) in at.items():
                yield _slice(job, collective, span, place, arguments | {"sent bytes": collective.sends.get(host, 0.0)})
            for source, target in collective.pairs:
                if source in at and target in at:
                    yield from _arrow(f"{job} {collective.name}", at[source], at[target], next(arrows))

    def _place(self, job: str, host: str, collective: _Collective) -> Event:
        return {"pid": self._process[host], "tid": self._threads[job, host] + collective.background}


def spans_of(row: IterationRow, collectives: Sequence[_Collective]) -> list[Span]:
    """(begin, end) in s of each collective in the iteration ``row``; those on one thread never overlap."""
    clock = row.end_s - row.exposed_s - row.straggler_s - row.compute_s
    planned: list[Span] = []
    for each in collectives:
        clock += each.before * row.compute_s
        begin = clock + (1 - each.overlap) * each.compute * row.compute_s
        end = begin + each.communication * row.communication_s
        planned.append((begin, end))
        clock += each.compute * row.compute_s
        clock = clock if each.background else max(clock, end)
    # Waiting for peers comes before communication; how much of it before which collective is not recorded.
    late = row.end_s - max([clock, *(end for _, end in planned)]) if row.exposed_s > 0 else 0.0
    spans: list[Span] = []
    free = {False: row.start_s, True: row.start_s}
    for number, (each, (begin, end)) in enumerate(zip(collectives, planned, strict=True), start=1):
        shift = late * number / len(planned)
        first = min(max(begin + shift, free[each.background]), row.end_s)
        free[each.background] = max(first, min(end + shift, row.end_s))
        spans.append((first, free[each.background]))
    return spans


def _collectives(job: Job, fabric: Fabric) -> tuple[_Collective, ...]:
    compute = job.compute_s or 1.0
    weights = [_weight(phase) for phase in job.phases]
    total = sum(weights)
    count = sum(phase.communicates for phase in job.phases)
    found, before = [], 0.0
    for phase, weight in zip(job.phases, weights, strict=True):
        share = phase.compute_s / compute
        if not phase.communicates:
            before += share
            continue
        communication = weight / total if total > 0 else 1 / count
        sends, pairs = _traffic(job, phase, fabric)
        found.append(
            _Collective(phase.collective, before, share, communication, phase.overlap, phase.background, sends, pairs)
        )
        before = 0.0
    return tuple(found)


def _weight(phase: Phase) -> float:
    """How long the phase's communication is, relative to others: the bytes of its busiest connection or link inside."""
    return max([0.0, *(each.bytes for each in phase.transfers), *(size for _, size in phase.inside)])


def _traffic(job: Job, phase: Phase, fabric: Fabric) -> tuple[dict[str, float], tuple[tuple[str, str], ...]]:
    sends: dict[str, float] = defaultdict(float)
    pairs: dict[tuple[str, str], None] = {}
    for transfer in phase.transfers:
        flow = job.flow_by_id[transfer.flow]
        source, target = fabric.ports[flow.source].host, fabric.ports[flow.target].host
        sends[source] += transfer.bytes
        pairs[source, target] = None
    return dict(sends), tuple(pairs)


def _by_iteration(
    rows: Sequence[IterationRow], threads: Mapping[tuple[str, str], int]
) -> dict[tuple[str, int], dict[str, IterationRow]]:
    """(job, iteration) -> host -> a row of one of its GPUs: all GPUs of a host communicate together."""
    found: dict[tuple[str, int], dict[str, IterationRow]] = defaultdict(dict)
    for row in rows:
        host, _ = host_and_index(row.gpu)
        if (row.job, host) in threads:
            found[row.job, row.iteration].setdefault(host, row)
    return found


def _slice(job: str, collective: _Collective, span: Span, place: Event, arguments: Event) -> Event:
    begin, end = span
    return {
        "ph": "X",
        "name": f"{job} {collective.name}",
        "cat": "communication",
        "ts": micro(begin),
        "dur": micro(end - begin),
        **place,
        "args": arguments,
    }


def _arrow(name: str, source: tuple[Event, Span], target: tuple[Event, Span], number: int) -> Iterator[Event]:
    """From the beginning of the sender's slice to the end of the receiver's."""
    (source_place, (begin, _)), (target_place, (target_begin, target_end)) = source, target
    end = max(target_begin, target_end - _ARROW_END_S)
    if end >= begin:
        common = {"name": name, "cat": "message", "id": number}
        yield {"ph": "s", **common, "ts": micro(begin), **source_place}
        yield {"ph": "f", "bp": "e", **common, "ts": micro(end), **target_place}
