"""An iteration of jobs as a GOAL schedule, the text that LogGOPSim and ATLAHS read: compute, sends and receives.

A rank is a port of a job's host; ranks of several jobs follow each other, as ATLAHS merges them. A message that follows
another is sent chunk by chunk, each after the chunk before has come in. Times are nanoseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil

from topologies.fabric import Fabric
from workloads.job import Flow, Job, Phase, Transfer


@dataclass
class _Rank:
    """The operations of a rank, in order, and which of them what comes next waits for."""

    lines: list[str] = field(default_factory=list)
    ready: tuple[str, ...] = ()
    count: int = 0

    def add(self, what: str, needs: Iterable[str]) -> str:
        """Add an operation that waits for ``needs``; return its label."""
        self.count += 1
        label = f"l{self.count}"
        self.lines.append(f"{label}: {what}")
        self.lines += [f"{label} requires {each}" for each in dict.fromkeys(needs)]
        return label


def schedule(jobs: Sequence[Job], fabric: Fabric) -> str:
    """Return one iteration of ``jobs``, without jitter and stragglers, as GOAL text."""
    ranks: list[_Rank] = []
    for job in jobs:
        ranks += _Schedule(job, fabric, len(ranks)).ranks
    lines = [f"num_ranks {len(ranks)}"]
    for number, rank in enumerate(ranks):
        lines += ["", f"rank {number} {{", *rank.lines, "}"]
    return "\n".join((*lines, ""))


class _Schedule:
    """The ranks of one job, the first of which is number ``first``."""

    def __init__(self, job: Job, fabric: Fabric, first: int) -> None:
        self._job, self._fabric, self._first = job, fabric, first
        ports = dict.fromkeys(port for flow in job.flows for port in (flow.source, flow.target))
        if not ports:  # a job inside one host
            ports = dict.fromkeys([fabric.nics[fabric.nic_of_gpu[job.gpus[0]]].ports[0]])
        self._place = {port: place for place, port in enumerate(ports)}
        self.ranks = [_Rank() for _ in ports]
        self._received: dict[int, dict[int, list[str]]] = {}
        behind: dict[int, list[str]] = {}
        self._tag = 0
        for index, phase in enumerate(job.phases):
            for place, waits in self._phase(index, phase).items():
                if phase.background:
                    behind.setdefault(place, []).extend(waits)
        for place, waits in behind.items():  # the iteration ends with what went on in the background
            self.ranks[place].add("calc 0 cpu 0", (*self.ranks[place].ready, *waits))

    def _phase(self, index: int, phase: Phase) -> dict[int, list[str]]:
        """Add a phase; return, by rank, what its communication ends with."""
        members = self._members(phase)
        may_send: dict[int, tuple[str, ...]] = {}
        computed: dict[int, tuple[str, ...]] = {}
        for place in members:
            rank = self.ranks[place]
            awaited = [each for number in phase.awaits for each in self._received.get(number, {}).get(place, ())]
            needs = (*rank.ready, *awaited)
            first = rank.add(_calc((1 - phase.overlap) * phase.compute_s), needs)
            may_send[place] = computed[place] = (first,)
            if phase.overlap > 0:
                computed[place] = (rank.add(_calc(phase.overlap * phase.compute_s), [first]),)
        ends = self._messages(phase, may_send)
        if phase.detached:
            self._received[index] = ends[1]
        waited = {} if phase.detached or phase.background else _joined(ends)
        for place in members:
            self.ranks[place].ready = (*computed[place], *waited.get(place, ()))
        return _joined(ends)

    def _members(self, phase: Phase) -> list[int]:
        gpus = [self._job.gpus[place] for place in phase.members] if phase.members else self._job.gpus
        hosts = {self._fabric.host_of_gpu[gpu] for gpu in gpus}
        return [place for port, place in self._place.items() if self._host(port) in hosts]

    def _host(self, port: str) -> str:
        return self._fabric.nics[self._fabric.ports[port].nic].host

    def _messages(
        self, phase: Phase, may_send: dict[int, tuple[str, ...]]
    ) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
        """Add the messages of a phase; return the labels of sends, and of receives, by rank."""
        sends: dict[int, list[str]] = {}
        receives: dict[int, list[str]] = {}
        arrived: dict[str, list[str]] = {transfer.flow: [] for transfer in phase.transfers}
        followed = {each.after: _parts(each) for each in phase.transfers if each.after is not None}
        queue = [(each, list(_chunks(each, followed.get(each.flow, 1)))) for each in phase.transfers]
        for turn in range(max((len(chunks) for _, chunks in queue), default=0)):
            for transfer, chunks in queue:
                if turn >= len(chunks):
                    continue
                flow = self._job.flow_by_id[transfer.flow]
                source, target = self._place[flow.source], self._place[flow.target]
                needs = may_send.get(source, ())
                if transfer.after is not None and turn > 0:
                    before = arrived[transfer.after]
                    needs = (before[min(turn, len(before)) - 1],) if before else needs
                self._tag += 1
                how = f"{chunks[turn]}b"
                sends.setdefault(source, []).append(self.ranks[source].add(self._send(how, flow), needs))
                label = self.ranks[target].add(self._receive(how, flow), ())
                receives.setdefault(target, []).append(label)
                arrived[transfer.flow].append(label)
        return sends, receives

    def _send(self, size: str, flow: Flow) -> str:
        return f"send {size} to {self._first + self._place[flow.target]} tag {self._tag} cpu 0 nic 0"

    def _receive(self, size: str, flow: Flow) -> str:
        return f"recv {size} from {self._first + self._place[flow.source]} tag {self._tag} cpu 0 nic 0"


def _chunks(transfer: Transfer, followed: int) -> Iterator[int]:
    """Bytes of the parts in which a message is sent; ``followed``: parts of one that forwards it, 1 for none."""
    size, parts = round(transfer.bytes), max(_parts(transfer), followed)
    bounds = [part * size // parts for part in range(parts + 1)]
    return (end - begin for begin, end in pairwise(bounds))


def _parts(transfer: Transfer) -> int:
    """In how many parts a message is forwarded: as much at a time as may be sent before anything has come in."""
    return ceil(transfer.bytes / transfer.lead - 1e-9) if transfer.after is not None and transfer.lead > 0 else 1


def _calc(seconds: float) -> str:
    return f"calc {round(1e9 * seconds)} cpu 0"


def _joined(ends: tuple[dict[int, list[str]], dict[int, list[str]]]) -> dict[int, list[str]]:
    sends, receives = ends
    return {place: [*sends.get(place, ()), *receives.get(place, ())] for place in {**sends, **receives}}
