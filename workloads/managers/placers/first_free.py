"""No placement: the first free GPUs in the fabric's order, what Crux calls "None" (figure 25)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Placer
from workloads.managers.jobs import Placement, Waiting


class FirstFree(Placer):
    """The first free GPUs, host by host, whatever they split."""

    name: ClassVar[str] = "none"
    summary: ClassVar[str] = "the first free GPUs in the fabric's order"

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """The first ``gpus`` that are free."""
        if gpus > state.free_gpus:
            return None
        chosen = np.flatnonzero(state.free)[:gpus]
        return Placement(tuple(state.structure.gpus[index] for index in chosen.tolist()))
