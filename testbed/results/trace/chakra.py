"""What ran as Chakra execution traces, a graph per rank: compute and collectives, measured, with what each waited for.

Rows of a run have times of iterations, not of phases: compute is divided among the phases as the job says, and the time
of communication in proportion to the bytes of their collectives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from testbed.results.record import IterationRow
from topologies.fabric import Fabric
from workloads.imported import chakra_wire as wire
from workloads.imported.chakra_wire import AttributeValue, ChakraNode
from workloads.job import Job, Phase

VERSION: Final = "0.0.4"
"""Of the schema, as feeders of Chakra expect it."""
KINDS: Final[Mapping[str, int]] = {
    **dict.fromkeys(("hierarchical", "tree", "ring", "scattered-ring", "parameter-server"), 0),
    "all-gather": 2,
    "broadcast": 5,
    "alltoall": 6,
    "reduce-scatter": 7,
}
"""Collective -> ``CollectiveCommType``."""


def traces(job: Job, fabric: Fabric, rows: Iterable[IterationRow]) -> dict[int, bytes]:
    """Return rank -> its trace, of the iterations of ``job`` among ``rows``; ranks are places in ``Job.gpus``."""
    mine: dict[str, list[IterationRow]] = {gpu: [] for gpu in job.gpus}
    for row in rows:
        if row.job == job.name and row.gpu in mine:
            mine[row.gpu].append(row)
    peers = _peers(job, fabric)
    return {
        rank: _trace(job, rank, sorted(mine[gpu], key=lambda row: row.iteration), peers)
        for rank, gpu in enumerate(job.gpus)
    }


def process_groups(job: Job) -> dict[str, list[int]]:
    """Return name -> ranks of the groups that carry out collectives, as simulators of ASTRA-sim read them."""
    numbers = _numbers(job)
    return {str(number): list(ranks) for ranks, number in numbers.items()}


def _numbers(job: Job) -> dict[tuple[int, ...], int]:
    found: dict[tuple[int, ...], int] = {}
    for phase in job.phases:
        for ranks in phase.groups:
            found.setdefault(ranks, len(found) + 1)
    return found


def _peers(job: Job, fabric: Fabric) -> Mapping[int, tuple[int | None, int | None]]:
    """Rank -> the rank before it and the one behind it in a pipeline of hosts."""
    hosts: dict[str, list[int]] = {}
    for rank, gpu in enumerate(job.gpus):
        hosts.setdefault(fabric.host_of_gpu[gpu], []).append(rank)
    stages = list(hosts.values())
    found: dict[int, tuple[int | None, int | None]] = {}
    for place, ranks in enumerate(stages):
        for turn, rank in enumerate(ranks):
            before = stages[place - 1] if place > 0 else []
            behind = stages[place + 1] if place + 1 < len(stages) else []
            found[rank] = (
                before[turn] if turn < len(before) else None,
                behind[turn] if turn < len(behind) else None,
            )
    return found


def _trace(
    job: Job, rank: int, rows: Sequence[IterationRow], peers: Mapping[int, tuple[int | None, int | None]]
) -> bytes:
    nodes = list(_nodes(job, rank, rows, peers))
    return wire.write_messages([wire.write_version(VERSION), *(wire.write_node(node) for node in nodes)])


def _nodes(
    job: Job, rank: int, rows: Sequence[IterationRow], peers: Mapping[int, tuple[int | None, int | None]]
) -> Iterator[ChakraNode]:
    numbers = _numbers(job)
    compute_s = sum(phase.compute_s for phase in job.phases if _computes(phase, rank)) or 1.0
    bytes_of_all = sum(phase.size for phase in job.phases) or 1.0
    number = 0
    last: tuple[int, ...] = ()
    for row in rows:
        open_until_end: list[int] = []
        for place, phase in enumerate(job.phases):
            if not _computes(phase, rank):
                continue
            took = row.compute_s * phase.compute_s / compute_s
            name = f"{job.name}.{row.iteration}.{place}"
            before = ChakraNode(
                number, f"{name}.compute", wire.COMPUTE, last, took * (1 - phase.overlap), _GPU, row.start_s
            )
            beside = ChakraNode(
                number + 1, f"{name}.beside", wire.COMPUTE, (number,), took * phase.overlap, _GPU, row.start_s
            )
            yield before
            yield beside
            ends = [beside.id]
            number += 2
            sending_s = row.communication_s * phase.size / bytes_of_all
            for node in _communication(phase, rank, number, name, sending_s, (before.id, row.start_s), numbers, peers):
                yield node
                number += 1
                (open_until_end if phase.background else ends).append(node.id)
            last = tuple(ends)
        last = (*last, *open_until_end)


def _computes(phase: Phase, rank: int) -> bool:
    return not phase.members or rank in phase.members


_GPU: Final[Mapping[str, AttributeValue]] = {"is_cpu_op": False}


def _communication(
    phase: Phase,
    rank: int,
    number: int,
    name: str,
    seconds: float,
    after: tuple[int, float],
    numbers: Mapping[tuple[int, ...], int],
    peers: Mapping[int, tuple[int | None, int | None]],
) -> Iterator[ChakraNode]:
    """The collective of a phase as ``rank`` sees it, or what it receives and sends in a pipeline."""
    size = round(phase.size)
    own = next((ranks for ranks in phase.groups if rank in ranks), ())
    if size == 0 or (phase.groups and len(own) < 2):
        return
    told: dict[str, AttributeValue] = {"is_cpu_op": False, "comm_size": size}
    before, started = after
    if phase.collective in KINDS:
        told["comm_type"] = KINDS[phase.collective]
        if own:
            told["pg_name"] = str(numbers[own])
        yield ChakraNode(number, f"{name}.{phase.collective}", wire.COLLECTIVE, (before,), seconds, told, started)
        return
    place = own.index(rank) if own else -1
    source = (own[place - 1] if place > 0 else None) if own else peers[rank][0]
    target = (own[place + 1] if place + 1 < len(own) else None) if own else peers[rank][1]
    if source is not None:
        ends: dict[str, AttributeValue] = {**told, "comm_src": source, "comm_dst": rank, "comm_tag": number}
        yield ChakraNode(number, f"{name}.receive", wire.RECEIVE, (before,), seconds, ends, started)
        number += 1
    if target is not None:
        ends = {**told, "comm_src": rank, "comm_dst": target, "comm_tag": number}
        yield ChakraNode(number, f"{name}.send", wire.SEND, (before,), seconds, ends, started)
