"""From an imported iteration to phases with messages: all groups of a kind carry out a collective at the same time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from topologies.fabric import Fabric
from workloads.communication.collectives import ALGORITHMS, Message, apart, expand, returned
from workloads.communication.intra_host import LinkBytes, inside_bytes
from workloads.communication.layout import Layout, layout_of
from workloads.imported.workload import (
    GROUPS,
    Collective,
    GroupKind,
    ImportedWorkload,
    Stretch,
    condensed,
    joined,
)
from workloads.models.model import PhaseTemplate

PHASES: Final = 48
"""Phases of an iteration unless a job says otherwise: a long file becomes about as many."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """A phase with what it sends."""

    template: PhaseTemplate
    messages: tuple[Message, ...] = ()
    inside: LinkBytes = ()
    """What moves over links inside hosts, where the fabric counts those."""
    groups: tuple[tuple[int, ...], ...] = ()
    """The ranks of each group; empty: all ranks together."""


@dataclass(frozen=True, slots=True)
class OnFabric:
    """Where the ranks of a job are."""

    gpus: Sequence[str]
    """GPU of each rank."""
    fabric: Fabric
    channels: int = 1


def expanded(workload: ImportedWorkload, place: OnFabric, phases: int = PHASES) -> Iterator[Expanded]:
    """Yield the phases of an iteration; shares are of ``workload.compute_s``.

    What takes no time, collectives inside a host whose links do not count, is left out, its compute kept.
    """
    layouts = {group: _layouts(workload, place, group) for group in GROUPS}
    counts = place.fabric.intra_host != "instant"
    silent = {group: not counts and all(len(layout.shares) < 2 for layout in layouts[group]) for group in GROUPS}
    stretches = condensed(joined(workload.stretches, silent), phases)
    compute_s = sum(stretch.compute_s for stretch in stretches) or 1.0
    behind = 0
    for stretch in stretches:
        template = _template(stretch, compute_s)
        if stretch.collective is None:
            yield Expanded(template)
            continue
        role = ""
        if stretch.collective.background:
            role, behind = f"b{behind}-", behind + 1
        groups: list[tuple[Message, ...]] = []
        inside: dict[str, float] = {}
        for layout in layouts[stretch.collective.group]:
            mine = _messages(stretch.collective, layout, place.channels)
            for link, size in inside_bytes(layout, template, mine):
                inside[link] = inside.get(link, 0.0) + size
            groups.append(mine)
        kind = stretch.collective.group
        ranks = () if kind == "all" else workload.parallelism.groups(kind)
        yield Expanded(template, tuple(apart(groups, role)), tuple(inside.items()), ranks)


def _layouts(workload: ImportedWorkload, place: OnFabric, group: GroupKind) -> tuple[Layout, ...]:
    """The GPUs of each group of a kind that has more than one rank."""
    if workload.parallelism.size(group) < 2:
        return ()
    ranks = workload.parallelism.groups(group)
    return tuple(layout_of([place.gpus[rank] for rank in members], place.fabric) for members in ranks)


def _template(stretch: Stretch, compute_s: float) -> PhaseTemplate:
    collective = stretch.collective
    if collective is None:
        return PhaseTemplate(stretch.compute_s / compute_s, "none", 0.0, 0.0)
    overlap = stretch.beside_s / stretch.compute_s if stretch.compute_s > 0 else 0.0
    name = ALGORITHMS.get(collective.kind, collective.kind)
    return PhaseTemplate(
        stretch.compute_s / compute_s, name, collective.bytes, overlap, collective.background, collective.returning
    )


def _messages(collective: Collective, layout: Layout, channels: int) -> tuple[Message, ...]:
    name = ALGORITHMS.get(collective.kind, collective.kind)
    messages = expand(name, layout, collective.bytes, channels=channels)
    return returned(messages) if collective.returning else messages
