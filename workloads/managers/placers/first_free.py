"""No placement: the first free GPUs, what Crux calls "None" (figure 25), or the first free NICs with their GPUs."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from workloads.managers.cluster_state import ClusterState
from workloads.managers.gpu_index import Ints
from workloads.managers.interfaces import Placer
from workloads.managers.jobs import Placement, Waiting


class FirstFree(Placer):
    """The first free GPUs, host by host, whatever they split."""

    name: ClassVar[str] = "none"
    summary: ClassVar[str] = "the first free GPUs in the fabric's order"

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """The first ``gpus`` that are free."""
        return first_gpus(state, gpus)


def first_gpus(state: ClusterState, gpus: int) -> Placement | None:
    """Return the first free GPUs in the fabric's order; None if these are too few."""
    if gpus > state.free_gpus:
        return None
    return _placement(state, np.flatnonzero(state.free)[:gpus])


def first_nics(state: ClusterState, gpus: int) -> Placement | None:
    """Return the first free NICs with all GPUs behind them, GPU by GPU only where no NIC is free; None for too few.

    As a node that allots GPUs and NICs jointly does. A single GPU needs no NIC, so it goes where one is already
    in use.
    """
    if gpus > state.free_gpus:
        return None
    structure = state.structure
    free_of_nic = np.bincount(structure.nic_of_gpu[state.free], minlength=len(structure.gpus_of_nic))
    whole = (free_of_nic == structure.gpus_of_nic)[structure.nic_of_gpu]
    free = np.flatnonzero(state.free)
    preferred = ~whole[free] if gpus == 1 else whole[free]
    chosen = free[np.argsort(~preferred, kind="stable")][:gpus]
    return _placement(state, np.sort(chosen))


def _placement(state: ClusterState, chosen: Ints) -> Placement:
    return Placement(tuple(state.structure.gpus[index] for index in chosen.tolist()))
