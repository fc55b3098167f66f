"""Gandiva's affinity (Xiao et al., OSDI 2018): servers that run jobs of n GPUs get more jobs of n GPUs.

The paper's order for a new job: servers of its affinity with room, servers without jobs, any with room. Inside a group:
fewest hosts, then the tightest fit. Sharing a full server in time is the policy's business.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from workloads.managers.cluster_state import ClusterState
from workloads.managers.gpu_index import Bools
from workloads.managers.interfaces import Placer
from workloads.managers.jobs import Placement, Waiting
from workloads.managers.placers.consolidated import consolidate, placement_of


class Affinity(Placer):
    """Hosts that run jobs of the same size first, then empty ones, then both, then any."""

    name: ClassVar[str] = "affinity"
    summary: ClassVar[str] = "hosts with jobs of the same size first, then empty ones, then any"

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """The first group of hosts with room."""
        for hosts in _groups(state, gpus):
            shares = consolidate(state.structure, np.where(hosts, state.free_by_host, 0), gpus)
            if shares is not None:
                return placement_of(state, shares)
        return None


def _groups(state: ClusterState, gpus: int) -> Iterator[Bools]:
    """Flags per host."""
    structure = state.structure
    same = np.zeros(len(structure.hosts), dtype=np.bool_)
    same[structure.host_of_gpu[state.job_size == gpus]] = True
    empty = state.free_by_host == structure.gpus_of_host
    yield from (same, empty, same | empty, np.ones(len(same), dtype=np.bool_))
