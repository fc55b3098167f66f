"""Messages of a run: when each began, when it had arrived, and what it takes in an empty network. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from testbed.engines.common.iterations import HostIteration, numbered
from testbed.experiment.experiment import Experiment
from testbed.results.path_history import PathsFrom, path_history
from testbed.results.record import DecisionRow, MessageRow
from topologies.fabric import Fabric
from workloads.iteration.protocol import PhaseTimes
from workloads.job import Flow, Job, Transfer


@dataclass(frozen=True, slots=True)
class EmptyPath:
    """What a path costs when nothing else is on it.

    ``link_s``: seconds that a message arrives later for each of its links, ``switch_s`` for each switch; ``packet``
    bytes are stored and forwarded at each of them, 0 where links let a packet through at once.
    """

    link_s: float = 0.0
    switch_s: float = 0.0
    packet: float = 0.0

    def seconds(self, size: float, capacities: Sequence[float]) -> float:
        """Seconds that ``size`` bytes take over links of ``capacities`` in bit/s: one packet after the other."""
        first = min(size, self.packet)
        forwarded = sum(8 * first / capacity for capacity in capacities)
        delays = self.link_s * len(capacities) + self.switch_s * (len(capacities) - 1)
        return forwarded + 8 * (size - first) / min(capacities) + delays


def message_rows(
    reports: Iterable[HostIteration],
    experiment: Experiment,
    origin: float,
    decisions: Sequence[DecisionRow],
    empty: EmptyPath,
) -> tuple[MessageRow, ...]:
    """A row for each message of every iteration that both its hosts ended; times undilated, from ``origin``.

    Real programs have none: what their messages are is not known.
    """
    by_job: dict[str, list[HostIteration]] = defaultdict(list)
    for report in reports:
        by_job[report.job].append(report)
    return tuple(
        row
        for job in experiment.jobs
        if job.external is None and job.flows
        for row in _JobMessages(job, experiment, decisions, empty).rows(by_job[job.name], origin)
    )


class _JobMessages:
    """The messages of one job."""

    def __init__(self, job: Job, experiment: Experiment, decisions: Sequence[DecisionRow], empty: EmptyPath) -> None:
        self._job, self._fabric, self._empty = job, experiment.fabric, empty
        self._dilation = experiment.scale.time
        self._history = path_history(job, decisions, job.start_s)
        self._known: dict[tuple[int, str, float], float] = {}

    def rows(self, reports: Sequence[HostIteration], origin: float) -> Iterator[MessageRow]:
        """In the order of iterations, phases and transfers."""
        if not self._history:
            return
        iterations: dict[int, dict[str, HostIteration]] = defaultdict(dict)
        for report in reports:
            iterations[report.iteration][report.host] = report
        for number in sorted(iterations):
            yield from self._of_iteration(number, iterations[number], origin)

    def _of_iteration(self, number: int, hosts: Mapping[str, HostIteration], origin: float) -> Iterator[MessageRow]:
        sent = {host: _first_of_each(report) for host, report in hosts.items()}
        received = {host: dict(numbered(report.phases)) for host, report in hosts.items()}
        for index, phase in enumerate(self._job.phases):
            arrivals = {host: iter(each[index].arrivals) for host, each in received.items() if index in each}
            for transfer in phase.transfers:
                flow = self._job.flow_by_id[transfer.flow]
                source, target = self._fabric.ports[flow.source].host, self._fabric.ports[flow.target].host
                arrived = next(arrivals[target], None) if target in arrivals else None
                if arrived is not None and index in sent.get(source, {}):
                    start_s = (sent[source][index].ready - origin) / self._dilation
                    end_s = (arrived - origin) / self._dilation
                    yield self._row(number, index, transfer, start_s, max(start_s, end_s))

    def _row(self, iteration: int, phase: int, transfer: Transfer, start_s: float, end_s: float) -> MessageRow:
        place = _in_force(self._history, start_s)
        key = place, transfer.flow, transfer.bytes
        if key not in self._known:
            capacities = _capacities(self._job.flow_by_id[transfer.flow], self._history[place], self._fabric)
            self._known[key] = self._empty.seconds(transfer.bytes, capacities)
        return MessageRow(
            self._job.name, iteration, phase, transfer.flow, transfer.bytes, start_s, end_s, self._known[key]
        )


def _first_of_each(report: HostIteration) -> dict[int, PhaseTimes]:
    """Place in the job's phases -> the first part of it on the host, in which it sends; in the last one it receives."""
    return {number: phase for number, phase in reversed(tuple(numbered(report.phases)))}


def _in_force(history: Sequence[PathsFrom], now_s: float) -> int:
    """Which of the paths hold at ``now_s``."""
    return max((place for place, each in enumerate(history) if each.time_s <= now_s), default=0)


def _capacities(flow: Flow, paths: PathsFrom, fabric: Fabric) -> list[float]:
    """Bit/s of the links of the flow's path, with those between PCIe switch and NIC where they are shaped."""
    found = [fabric.links[link].capacity for link in paths.paths[flow.id]]
    for port in (flow.source, flow.target):
        nic = fabric.ports[port].nic
        if nic in fabric.shaped_nics:
            found.append(fabric.nic_links[nic][0].capacity)
    return found
