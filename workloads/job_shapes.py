"""Jobs of one shape built once: the same model on as many GPUs at the same places of as many hosts, wherever those are.

What a job sends depends on its hosts only by their names. So the first job of a shape is built as
:mod:`workloads.build` builds it, and the next ones get its messages with the names of their own hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from topologies.fabric import Fabric, Host
from workloads.build import JobSpec, build_jobs, check_job
from workloads.connections import PortBook
from workloads.job import Flow, Job, Transfer

MOST_SHAPES: Final = 4096
"""Shapes that are kept; all are forgotten when there are more."""
Asked = Callable[[str, str, tuple[str, ...]], JobSpec]
"""Name, model and GPUs of a job -> what is asked for. What it says beside these is the same for all jobs of a model."""

_SEED = 1
"""Of :func:`~workloads.build.build_jobs`, where none is given."""
_Shape = tuple[int, ...]
"""Per GPU, in order: which of the job's hosts it is on, the kind of that host, its place there."""
_Connection = tuple[str, int, int, int, int, float]
"""Of a flow: its role; which host of the job sends from which of its ports; the same of the receiver; bytes."""
_Message = tuple[int, float, int, float]
"""Of a transfer: place of its flow, bytes, place of the flow it waits for (-1: none), lead."""


class JobShapes:
    """Builds jobs one by one, each alone on ``fabric``: the same as ``build_jobs`` of what is ``asked``.

    Jobs that move anything inside hosts are built anew each time.
    """

    def __init__(self, fabric: Fabric, asked: Asked) -> None:
        self._fabric, self._asked = fabric, asked
        self._ports = {name: _ports_of(fabric, host) for name, host in fabric.hosts.items()}
        kinds: dict[object, int] = {}
        self._places: dict[str, tuple[str, int, int]] = {}
        for name, host in fabric.hosts.items():
            kind = kinds.setdefault(_kind(fabric, host), len(kinds))
            self._places.update((gpu, (name, kind, place)) for place, gpu in enumerate(host.gpus))
        self._known: dict[tuple[str, _Shape], _Built | None] = {}

    def job(self, name: str, model: str, gpus: tuple[str, ...]) -> Job:
        """Return the job ``name`` of ``model`` on ``gpus``; raises as :func:`~workloads.build.build_jobs` does."""
        spec = self._asked(name, model, gpus)
        check_job(spec)
        shape, hosts = self._shape(gpus)
        ports = [self._ports[host] for host in hosts]
        known = self._known.get((model, shape))
        if known is not None:
            return known.job(name, gpus, ports)
        job = build_jobs([spec], self._fabric, seed=_SEED)[0]
        if (model, shape) not in self._known:
            if len(self._known) >= MOST_SHAPES:
                self._known.clear()
            self._known[model, shape] = None if job.inside else _Built.of(job, ports)
        return job

    def _shape(self, gpus: Sequence[str]) -> tuple[_Shape, list[str]]:
        """The shape of ``gpus``, and their hosts in order; GPUs that the fabric lacks have a shape of their own."""
        hosts: dict[str, int] = {}
        shape: list[int] = []
        for gpu in gpus:
            host, kind, place = self._places.get(gpu, ("", -1, -1))
            shape += (hosts.setdefault(host, len(hosts)), kind, place)
        hosts.pop("", None)
        return tuple(shape), list(hosts)


@dataclass(frozen=True, slots=True)
class _Built:
    """A job of a shape, and what it sends without the names of its hosts."""

    first: Job
    connections: tuple[_Connection, ...]
    messages: tuple[tuple[_Message, ...], ...]
    """By phase."""

    @classmethod
    def of(cls, job: Job, ports: Sequence[Sequence[str]]) -> _Built:
        """Take the names of ``ports`` (by host of the job) out of ``job``."""
        place = {port: (host, number) for host, own in enumerate(ports) for number, port in enumerate(own)}
        number = {flow.id: number for number, flow in enumerate(job.flows)}
        return cls(
            job,
            tuple((_role(flow), *place[flow.source], *place[flow.target], flow.bytes) for flow in job.flows),
            tuple(
                tuple(
                    (number[each.flow], each.bytes, -1 if each.after is None else number[each.after], each.lead)
                    for each in phase.transfers
                )
                for phase in job.phases
            ),
        )

    def job(self, name: str, gpus: tuple[str, ...], ports: Sequence[Sequence[str]]) -> Job:
        """The job ``name`` of this shape on ``gpus``, whose hosts have ``ports``."""
        book = PortBook(_SEED)
        flows: list[Flow] = []
        for role, source_host, source_port, target_host, target_port, size in self.connections:
            source, target = ports[source_host][source_port], ports[target_host][target_port]
            identity = f"{name}:{role}:{source}>{target}"
            flows.append(
                Flow(
                    identity,
                    name,
                    source,
                    target,
                    size,
                    book.source_port(identity, source),
                    book.target_port(target),
                )
            )
        ids = [flow.id for flow in flows]
        phases = tuple(
            replace(phase, transfers=_transfers(ids, sent)) if sent else phase
            for phase, sent in zip(self.first.phases, self.messages, strict=True)
        )
        return replace(self.first, name=name, gpus=gpus, phases=phases, flows=tuple(flows))


def _transfers(ids: Sequence[str], sent: Sequence[_Message]) -> tuple[Transfer, ...]:
    return tuple(
        Transfer(ids[flow], size, ids[after] if after >= 0 else None, lead) for flow, size, after, lead in sent
    )


def _role(flow: Flow) -> str:
    """The part of a flow's id between its job and its ports."""
    return flow.id[len(flow.job) + 1 : -len(f":{flow.source}>{flow.target}")]


def _ports_of(fabric: Fabric, host: Host) -> tuple[str, ...]:
    return tuple(port for nic in host.nics for port in fabric.nics[nic].ports)


def _kind(fabric: Fabric, host: Host) -> object:
    """What a host has, without names: per NIC its number, its ports, and the places of the GPUs nearest to it."""
    place = {gpu: number for number, gpu in enumerate(host.gpus)}
    nics = [fabric.nics[name] for name in host.nics]
    return len(host.gpus), tuple(
        (nic.index, len(nic.ports), tuple(place.get(gpu, -1) for gpu in nic.gpus)) for nic in nics
    )
