"""The placer: GPUs under ToRs that have few fragments of jobs which cross them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from workloads.managers.cluster_state import ClusterState
from workloads.managers.gpu_index import Ints, Structure
from workloads.managers.interfaces import Placer
from workloads.managers.jobs import Placement, Waiting
from workloads.managers.options import whole
from workloads.managers.placers.monkeytree.fragments import Racks, ToRs, bounded


def checked_fragments(part: str, fragments: object) -> int:
    """Return the option ``fragments``; ``ValueError`` unless it is a whole number of at least 1."""
    return whole(part, "fragments", fragments, least=1)


class MonkeyTree(Placer):
    """One ToR where a job fits; else ToRs with fewer than ``fragments`` fragments, as few as possible. Others wait."""

    name: ClassVar[str] = "monkeytree"
    summary: ClassVar[str] = "at most two fragments of jobs that cross racks under a ToR"

    def __init__(self, *, fragments: int = 2) -> None:
        self._most = checked_fragments("monkeytree", fragments)

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """Bounded fragments, or None."""
        where = bounded(racks_of(state, self._most), gpus)
        return None if where is None else Placement(gpus_under(state.structure, state.free, where))


def racks_of(state: ClusterState, most: int) -> Racks:
    """Return the cluster as jobs under ToRs."""
    structure = state.structure
    free = tuple(int(count) for count in structure.by_tor(state.free_by_host))
    return Racks(free, {name: where_of(structure, held) for name, held in state.held.items()}, most)


def where_of(structure: Structure, held: Ints) -> Mapping[int, int]:
    """ToR -> how many of the GPUs ``held`` are under it."""
    tors, counts = np.unique(structure.tor_of_gpu[held], return_counts=True)
    return dict(zip(tors.tolist(), counts.tolist(), strict=True))


def gpus_under(structure: Structure, free: np.ndarray, where: ToRs) -> tuple[str, ...]:
    """Return ``free`` GPUs under each ToR, as many as ``where`` says, of the fullest hosts that have enough first."""
    chosen: list[int] = []
    for tor, wanted in where.items():
        mine = np.flatnonzero(free & (structure.tor_of_gpu == tor))
        by_host: dict[int, list[int]] = {}
        for gpu in mine.tolist():
            by_host.setdefault(int(structure.host_of_gpu[gpu]), []).append(gpu)
        chosen += _of_hosts(list(by_host.values()), wanted)
    return structure.in_ring(np.array(sorted(chosen), dtype=np.intp))


def _of_hosts(hosts: list[list[int]], wanted: int) -> list[int]:
    """GPUs of as few hosts as possible: the roomiest whole, then the tightest for the rest."""
    found: list[int] = []
    left = sorted(hosts, key=len, reverse=True)
    while wanted > 0:
        fitting = [gpus for gpus in left if len(gpus) >= wanted]
        taken = min(fitting, key=len) if fitting else left[0]
        left.remove(taken)
        found += taken[:wanted]
        wanted -= min(wanted, len(taken))
    return found
