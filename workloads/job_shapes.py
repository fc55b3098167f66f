"""Jobs of one shape built once: the same model on as many GPUs at the same NICs of as many hosts, wherever those are.

What a job sends depends on its hosts only by their names. So the first job of a shape is built as
:mod:`workloads.build` builds it, and the next ones get its messages with the names of their own hosts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from topologies.fabric import Fabric
from workloads.build import JobSpec, build_jobs, check_job
from workloads.connections import PortBook
from workloads.errors import is_job_name
from workloads.job import Flow, Job, Transfer
from workloads.models.catalogue import CATALOGUE

MOST_SHAPES: Final = 4096
"""Shapes that are kept; all are forgotten when there are more."""
Asked = Callable[[str, str, tuple[str, ...]], JobSpec]
"""Name, model and GPUs of a job -> what is asked for. What it says beside these is the same for all jobs of a model."""

_SEED = 1
"""Of :func:`~workloads.build.build_jobs`, where none is given."""
_Shape = tuple[int, tuple[tuple[int, object], ...]]
"""GPUs in all; per host, in order: how many (0 where that matters to nobody), and what tells their NICs from others."""
_BY_NIC: Final = frozenset({"hierarchical", "tree", "reduce-scatter", "all-gather", "ring", "broadcast"})
"""Collectives that have as many bytes for every NIC, however many GPUs it is nearest to."""
_Connection = tuple[str, int, int, int, int, float, int]
"""Of a flow: its role; which host of the job sends from which of its ports; the same of the receiver; bytes; target
port, which is counted up per port of the receiver, so that it is the same for all jobs of a shape."""
_Message = tuple[int, float, int, float]
"""Of a transfer: place of its flow, bytes, place of the flow it waits for (-1: none), lead."""


class JobShapes:
    """Builds jobs one by one, each alone on ``fabric``: the same as ``build_jobs`` of what is ``asked``.

    But for its draws, which depend on the job's id in its trace: a part of a trace has the draws of the whole.
    Jobs that more than the number of GPUs at each NIC matters to are built anew each time.
    """

    def __init__(self, fabric: Fabric, asked: Asked) -> None:
        self._fabric, self._asked = fabric, asked
        self._collectives: dict[str, set[str]] = {}
        """By model, where it has been checked."""
        self._known: dict[tuple[str, _Shape], _Built] = {}
        self._used: dict[tuple[str, frozenset[str]], tuple[object, tuple[str, ...]]] = {}

    def job(self, name: str, model: str, gpus: tuple[str, ...]) -> Job:
        """Return the job ``name`` of ``model`` on ``gpus``; raises as :func:`~workloads.build.build_jobs` does."""
        collectives = self._collectives.get(model)
        if collectives is None or not is_job_name(name):
            spec = self._asked(name, model, gpus)
            check_job(spec)
            collectives = self._collectives[model] = _collectives(spec)
        known_gpus = self._fabric.host_of_gpu.keys() >= set(gpus) and len(set(gpus)) == len(gpus) > 0
        if not known_gpus or not collectives or "scattered-ring" in collectives:
            return self._built(name, model, gpus)
        shape, ports = self._shape(gpus, counts=not collectives <= _BY_NIC)
        known = self._known.get((model, shape))
        if known is not None:
            return known.job(name, gpus, ports, PortBook(_SEED, self._fabric))
        job = self._built(name, model, gpus)
        if not job.inside:
            if len(self._known) >= MOST_SHAPES:
                self._known.clear()
            self._known[model, shape] = _Built.of(job, ports)
        return job

    def _built(self, name: str, model: str, gpus: tuple[str, ...]) -> Job:
        job = build_jobs([self._asked(name, model, gpus)], self._fabric, seed=_SEED)[0]
        book = PortBook(_SEED, self._fabric)
        return replace(
            job,
            flows=tuple(replace(flow, source_port=book.source_port_by(flow.id, flow.source)) for flow in job.flows),
        )

    def _shape(self, gpus: Sequence[str], counts: bool) -> tuple[_Shape, list[tuple[str, ...]]]:
        """The shape of ``gpus``, and the ports that may be used of each host."""
        host_of_gpu, nic_of_gpu = self._fabric.host_of_gpu, self._fabric.nic_of_gpu
        nics: dict[str, list[str]] = {}
        for gpu in gpus:
            nics.setdefault(host_of_gpu[gpu], []).append(nic_of_gpu[gpu])
        parts, ports = [], []
        for host, nearest in nics.items():
            key = host, frozenset(nearest)
            if key not in self._used:
                self._used[key] = self._used_of(*key)
            part, own = self._used[key]
            parts.append((len(nearest) if counts else 0, part))
            ports.append(own)
        return (len(gpus), tuple(parts)), ports

    def _used_of(self, host: str, nearest: frozenset[str]) -> tuple[object, tuple[str, ...]]:
        """What tells the NICs ``nearest`` to a job's GPUs on ``host`` from those on others, and their ports."""
        fabric = self._fabric
        nics = [fabric.nics[name] for name in fabric.hosts[host].nics]
        if fabric.has_rail_switches:  # then it matters which of the host's NICs they are
            part: object = tuple((nic.index, len(nic.ports), nic.name in nearest) for nic in nics)
        else:
            nics = [nic for nic in nics if nic.name in nearest]
            part = tuple(len(nic.ports) for nic in nics)
        return part, tuple(port for nic in nics for port in nic.ports)


def _collectives(spec: JobSpec) -> set[str]:
    """The collectives of a job; none if it depends on its GPUs by more than a shape and these say."""
    if any((spec.stragglers, spec.experts, spec.workload, spec.external)):
        return set()
    of_model = {phase.collective for phase in CATALOGUE[spec.model].phases}
    return of_model if spec.collective is None else {spec.collective, *of_model}


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
            tuple(
                (_role(flow), *place[flow.source], *place[flow.target], flow.bytes, flow.target_port)
                for flow in job.flows
            ),
            tuple(
                tuple(
                    (number[each.flow], each.bytes, -1 if each.after is None else number[each.after], each.lead)
                    for each in phase.transfers
                )
                for phase in job.phases
            ),
        )

    def job(self, name: str, gpus: tuple[str, ...], ports: Sequence[Sequence[str]], book: PortBook) -> Job:
        """The job ``name`` of this shape on ``gpus``, whose hosts have ``ports``; ``book`` is new."""
        flows: list[Flow] = []
        for role, source_host, source_port, target_host, target_port, size, listens in self.connections:
            source, target = ports[source_host][source_port], ports[target_host][target_port]
            identity = f"{name}:{role}:{source}>{target}"
            own_port = book.source_port_by(identity, source)
            flows.append(Flow(identity, name, source, target, size, own_port, listens))
        ids = [flow.id for flow in flows]
        phases = tuple(
            replace(phase, transfers=_transfers(ids, sent)) if sent else phase
            for phase, sent in zip(self.first.phases, self.messages, strict=True)
        )
        return replace(self.first, name=name, gpus=gpus, draws=book.draws(gpus), phases=phases, flows=tuple(flows))


def _transfers(ids: Sequence[str], sent: Sequence[_Message]) -> tuple[Transfer, ...]:
    return tuple(
        Transfer(ids[flow], size, ids[after] if after >= 0 else None, lead) for flow, size, after, lead in sent
    )


def _role(flow: Flow) -> str:
    """The part of a flow's id between its job and its ports."""
    return flow.id[len(flow.job) + 1 : -len(f":{flow.source}>{flow.target}")]
