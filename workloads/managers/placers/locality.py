"""Placing by a ladder of locality, as Philly does (Jeon et al., ATC 2019)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Placer
from workloads.managers.jobs import Placement, Waiting
from workloads.managers.placers.consolidated import consolidate, placement_of

TRIES_PER_LEVEL = 5
"""From memory of the paper, which does not print it."""


class Locality(Placer):
    """Places by a ladder of locality, one step for each ``tries`` times that a job was sent back.

    Step 0: the fewest hosts, under one ToR if they can be (a job larger than a ToR: the fewest hosts). Step 1: up to
    twice as many hosts under one ToR. Step 2: any number there. Step 3: anywhere.
    """

    name: ClassVar[str] = "locality"
    summary: ClassVar[str] = "fewest hosts under one ToR; less local the more often a job was sent back"

    def __init__(self, *, tries: int = TRIES_PER_LEVEL) -> None:
        if isinstance(tries, bool) or not isinstance(tries, int) or tries < 1:
            raise ValueError(f"option 'tries' of locality must be a whole number of at least 1, not '{tries}'")
        self._tries = tries

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """The tightest place that the job's step allows."""
        structure, free = state.structure, state.free_by_host
        step = job.attempts // self._tries
        fewest = -(-gpus // int(structure.gpus_of_host.max()))
        most = {0: fewest, 1: 2 * fewest}.get(step, len(structure.hosts))
        per_tor = int(structure.by_tor(structure.gpus_of_host).max())
        if step < 3 and gpus <= per_tor:
            rooms = structure.by_tor(free)
            for tor in np.lexsort((np.arange(len(rooms)), rooms)).tolist():
                if rooms[tor] >= gpus:
                    shares = consolidate(structure, np.where(structure.tor_of_host == tor, free, 0), gpus)
                    if shares is not None and len(shares) <= most:
                        return placement_of(state, shares)
            return None
        shares = consolidate(structure, free, gpus)
        return None if shares is None or len(shares) > most else placement_of(state, shares)
