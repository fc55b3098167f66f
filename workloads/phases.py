"""Phases and connections of a job, from the messages of its collectives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from workloads.communication.collectives import Channel, Message
from workloads.communication.intra_host import LinkBytes
from workloads.connections import PortBook
from workloads.errors import JobError
from workloads.job import Flow, Phase, Transfer
from workloads.models.model import PhaseTemplate

Made = TypeVar("Made")


def phase_of(
    job: str,
    template: PhaseTemplate,
    messages: Sequence[Message],
    compute_s: float,
    inside: LinkBytes,
    groups: tuple[tuple[int, ...], ...] = (),
) -> Phase:
    """Return the phase of ``template`` in a job that computes ``compute_s`` an iteration.

    ``groups``: places of the GPUs of each group that carries out the collective; none for all together.
    """
    return Phase(
        compute_s=template.share * compute_s,
        overlap=template.overlap,
        collective=template.collective,
        transfers=transfers_of(job, messages),
        inside=inside,
        background=template.background,
        size=template.bytes,
        groups=groups,
    )


def transfers_of(job: str, messages: Sequence[Message]) -> tuple[Transfer, ...]:
    """Return ``messages`` on the flows of ``job``."""
    return tuple(
        Transfer(
            message.channel.flow_id(job),
            message.bytes,
            message.after.flow_id(job) if message.after else None,
            message.lead,
        )
        for message in messages
    )


def flows_of(job: str, messages: Sequence[Message], ports: PortBook) -> tuple[Flow, ...]:
    """One flow per channel, its bytes those of all phases; in order of first use."""
    sizes: dict[Channel, float] = {}
    for message in messages:
        sizes[message.channel] = sizes.get(message.channel, 0.0) + message.bytes
    return tuple(_flow(job, channel, size, ports) for channel, size in sizes.items())


def _flow(job: str, channel: Channel, size: float, ports: PortBook) -> Flow:
    identity = channel.flow_id(job)
    try:
        source_port, target_port = ports.source_port(channel.source, channel.target), ports.target_port(channel.target)
    except ValueError as error:
        raise JobError(job, str(error)) from None
    return Flow(identity, job, channel.source, channel.target, size, source_port, target_port)


def once_per_transfers(compute: Callable[[tuple[Transfer, ...]], Made]) -> Callable[[Phase], Made]:
    """Return ``compute`` of the transfers of a phase, done once for phases that share them, as microbatches do.

    It knows transfers by their identity: the phases have to outlive it.
    """
    known: dict[int, Made] = {}

    def of(phase: Phase) -> Made:
        key = id(phase.transfers)
        if key not in known:
            known[key] = compute(phase.transfers)
        return known[key]

    return of
