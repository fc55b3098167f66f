"""Muri-net: Muri's matching (Zhao et al., SIGCOMM 2022) where every GPU has one job.

Muri lets jobs share GPUs, one computing while the other sends. Here GPUs are exclusive, so the matching
chooses which jobs share an uplink (of a ToR) instead; resources are two, compute and network. This is
what Crux may mean by "schedules jobs by reducing idle links"; the paper does not explain how.

A job that fits under one ToR needs no uplink, and is consolidated there. Any other takes whole free ToRs
first; what is left of it goes under a ToR that it shares with its partner: of the jobs with as many GPUs,
that ask now or run with a ToR half used, the one that a maximum-weight matching by interleaving
efficiency gives it. A job without partner keeps to itself while ToRs are free.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from workloads.managers.cluster_state import ClusterState
from workloads.managers.gpu_index import Bools, Ints
from workloads.managers.interfaces import Placer
from workloads.managers.jobs import Placement, Waiting
from workloads.managers.placers.consolidated import Share, consolidate, placement_of
from workloads.managers.placers.matching import maximum_weight_matching
from workloads.managers.policies.sharing.interleaving import efficiency_weight


class MuriNet(Placer):
    """Jobs that interleave well share an uplink."""

    name: ClassVar[str] = "muri"
    summary: ClassVar[str] = "Muri-net: a matching by interleaving efficiency says which jobs share a ToR's uplinks"
    uses: Mapping[str, str] = {"stages": "choosing who shares uplinks"}

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """Under one ToR if possible; else whole ToRs, and the rest beside its partner."""
        if gpus > state.free_gpus:
            return None
        structure, free = state.structure, state.free_by_host.copy()
        if gpus <= structure.by_tor(free).max():
            return _consolidated(state, _under_one_tor(state, gpus), gpus, [])
        whole, left = _whole_tors(state, gpus)
        filled = np.flatnonzero(np.isin(structure.tor_of_host, whole)).tolist()
        shares = [(host, int(free[host])) for host in filled]
        free[filled] = 0
        if left == 0:
            return placement_of(state, shares)
        for tors in _preferred(state, job, free, left):
            allowed = np.where(tors[structure.tor_of_host], free, 0)
            if (placement := _consolidated(state, allowed, left, shares)) is not None:
                return placement
        return None


def _consolidated(state: ClusterState, free: Ints, gpus: int, before: list[Share]) -> Placement | None:
    shares = consolidate(state.structure, free, gpus)
    return None if shares is None else placement_of(state, [*before, *shares])


def _under_one_tor(state: ClusterState, gpus: int) -> Ints:
    """The free GPUs by host, of ToRs only that have room for all ``gpus``."""
    structure, free = state.structure, state.free_by_host
    return np.where(structure.by_tor(free)[structure.tor_of_host] >= gpus, free, 0)


def _whole_tors(state: ClusterState, gpus: int) -> tuple[list[int], int]:
    """Wholly free ToRs that the job fills, largest first, and how many GPUs are left to place."""
    sizes = state.structure.gpus_of_tor
    open_tors = np.flatnonzero(state.structure.by_tor(state.free_by_host) == sizes)
    taken = []
    for tor in open_tors[np.argsort(-sizes[open_tors], kind="stable")].tolist():
        if 0 < sizes[tor] <= gpus:
            taken.append(tor)
            gpus -= int(sizes[tor])
    return taken, gpus


def _preferred(state: ClusterState, job: Waiting, free: Ints, left: int) -> Iterator[Bools]:
    """ToRs for the last ``left`` GPUs, by preference: beside the partner, under free ToRs, anywhere."""
    structure = state.structure
    by_tor = structure.by_tor(free)
    whole = by_tor == structure.gpus_of_tor
    half_used = _half_used(state, job, by_tor, left)
    partner = _partner(state, job, half_used)
    if partner in half_used:
        yield half_used[partner]
    elif partner:
        yield whole & (by_tor >= 2 * left)
    yield whole
    yield by_tor > 0


def _half_used(state: ClusterState, job: Waiting, by_tor: Ints, left: int) -> dict[str, Bools]:
    """Running jobs with as many GPUs -> the ToRs where ``left`` GPUs find room, and no third job's uplink traffic."""
    structure = state.structure
    crossing = np.zeros(len(structure.tors), dtype=np.intp)
    tors_of: dict[str, Ints] = {}
    for name, running in state.running.items():
        tors = np.flatnonzero(np.bincount(structure.tor_of_gpu[state.held[name]], minlength=len(crossing)))
        if len(tors) > 1:
            crossing[tors] += 1
            if len(running.gpus) == job.gpus:
                tors_of[name] = tors
    found: dict[str, Bools] = {}
    for name, tors in tors_of.items():
        room = np.zeros(len(crossing), dtype=np.bool_)
        room[tors] = (crossing[tors] == 1) & (by_tor[tors] >= left)
        if room.any():
            found[name] = room
    return found


def _partner(state: ClusterState, job: Waiting, half_used: dict[str, Bools]) -> str | None:
    """The name of the job that the matching gives to ``job``; None if it stays alone."""
    asking = _admitted(state, job)
    running = [state.running[name].job for name in half_used]
    candidates = [job, *asking, *running]
    pairs = maximum_weight_matching(_weights(candidates, 1 + len(asking)))
    return next((candidates[other].name for one, other in pairs if one == 0), None)


def _admitted(state: ClusterState, job: Waiting) -> list[Waiting]:
    """The other jobs of this size that could start now too: as many as the free GPUs hold."""
    others = [
        other
        for other in state.asking
        if other.gpus == job.gpus and other.name != job.name and other.name not in state.running
    ]
    return others[: max(0, state.free_gpus // job.gpus - 1)]


def _weights(jobs: Sequence[Waiting], placed_from: int) -> list[list[int]]:
    """Interleaving efficiencies of all pairs; jobs from ``placed_from`` on are placed, and no pair by themselves.

    A job with unknown stages has no pair.
    """
    stages = [(job.compute_s, job.communication_s) for job in jobs]
    weights = [[0] * len(jobs) for _ in jobs]
    for one in range(placed_from):
        for other in range(one + 1, len(jobs)):
            if any(stages[one]) and any(stages[other]):
                weights[one][other] = weights[other][one] = efficiency_weight([stages[one], stages[other]])
    return weights
