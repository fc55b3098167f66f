"""Placing by a ladder of locality, as Philly does (Jeon et al., ATC 2019)."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import ClassVar, Final

import numpy as np

from workloads.managers.cluster_state import ClusterState
from workloads.managers.gpu_index import Structure
from workloads.managers.interfaces import Placer
from workloads.managers.jobs import Placement, Waiting
from workloads.managers.options import one_of, share, whole
from workloads.managers.placers.consolidated import Consolidated, Share, consolidate, placement_of
from workloads.managers.placers.first_free import first_gpus, first_nics

TRIES_PER_LEVEL = 5
"""From memory of the paper, which does not print it."""
UNITS: Final = {"gpu": first_gpus, "nic": first_nics}
"""What a relaxed job takes one by one, and how."""


class Locality(Placer):
    """Places by a ladder of locality, one step for each ``tries`` times that a job was sent back.

    An attempt that failed is no try: the next one begins with step 0.

    Step 0: the fewest hosts, under one ToR if they can be (a job larger than a ToR: the fewest hosts). Step 1: up to
    twice as many hosts under one ToR. Step 2: any number there. Step 3: anywhere.
    """

    name: ClassVar[str] = "locality"
    summary: ClassVar[str] = "fewest hosts under one ToR; less local the more often a job was sent back"

    def __init__(self, *, tries: int = TRIES_PER_LEVEL) -> None:
        self._tries = whole(self.name, "tries", tries, least=1)

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """The tightest place that the job's step allows."""
        structure, free = state.structure, state.free_by_host
        most = self._most_hosts(structure, job, gpus)
        if self._under_one_tor(structure, job, gpus):
            rooms = structure.by_tor(free)
            for tor in np.lexsort((np.arange(len(rooms)), rooms)).tolist():
                if rooms[tor] >= gpus:
                    shares = consolidate(structure, np.where(structure.tor_of_host == tor, free, 0), gpus)
                    if shares is not None and len(shares) <= most:
                        return placement_of(state, shares)
            return None
        shares = consolidate(structure, free, gpus)
        return None if shares is None or len(shares) > most else placement_of(state, shares)

    def part(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """What is free of a place that the job's step allows: where most is free, on the hosts with most free GPUs."""
        structure = state.structure
        most = self._most_hosts(structure, job, gpus)
        best: list[tuple[int, int]] = []
        for hosts in self._groups(structure, job, gpus):
            chosen = [host for host in hosts if structure.hosts[host] not in state.absent]
            chosen = sorted(chosen, key=lambda host: (-int(state.free_by_host[host]), host))[:most]
            if sum(int(structure.gpus_of_host[host]) for host in chosen) >= gpus:
                shares = _first_of(((host, int(state.free_by_host[host])) for host in chosen), gpus)
                best = max(best, shares, key=lambda each: sum(count for _, count in each))
        return placement_of(state, best) if best else None

    def _step(self, job: Waiting) -> int:
        return job.tries // self._tries

    def _most_hosts(self, structure: Structure, job: Waiting, gpus: int) -> int:
        """On how many hosts the job may be."""
        fewest = -(-gpus // int(structure.gpus_of_host.max()))
        return {0: fewest, 1: 2 * fewest}.get(self._step(job), len(structure.hosts))

    def _under_one_tor(self, structure: Structure, job: Waiting, gpus: int) -> bool:
        return self._step(job) < 3 and gpus <= int(structure.gpus_of_tor.max())

    def _groups(self, structure: Structure, job: Waiting, gpus: int) -> list[list[int]]:
        """Hosts among which the job's place may be: those of one ToR, or all."""
        if not self._under_one_tor(structure, job, gpus):
            return [list(range(len(structure.hosts)))]
        return [np.flatnonzero(structure.tor_of_host == tor).tolist() for tor in range(len(structure.tors))]


class Relaxed(Placer):
    """Consolidates each job, or gives up its locality with ``probability``: it then takes the first free GPUs or NICs.

    A model of what relaxed locality leaves behind, whatever made a job give it up: tries that ran out (Philly), a
    quota, a request without a topology. The first free ones are the holes that departed jobs left, so a job is split
    over hosts that others use. ``unit`` says what is handed out: each ``gpu`` by itself, so that jobs come to share
    NICs, or a ``nic`` with all GPUs behind it. Which jobs are relaxed depends on the seed and the job's name alone, and
    a job that is relaxed at some probability is so at every higher one: 0 is ``consolidated``, 1 with ``gpu`` is
    ``none``.
    """

    name: ClassVar[str] = "relaxed"
    summary: ClassVar[str] = "consolidates, but for a share of the jobs, which take the first free GPUs"

    def __init__(self, *, probability: float = 0.5, unit: str = "gpu", seed: int = 1) -> None:
        self._probability, self._seed = share(self.name, "probability", probability), whole(self.name, "seed", seed)
        self._anywhere = UNITS[one_of(self.name, "unit", unit, UNITS)]
        self._together = Consolidated()

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """On the fewest hosts, or on the first free GPUs or NICs."""
        relaxed = Random(f"{self._seed}|relaxed|{job.draw_key}").random() < self._probability
        return self._anywhere(state, gpus) if relaxed else self._together.place(state, job, gpus)


def _first_of(rooms: Iterable[Share], gpus: int) -> list[Share]:
    """The first ``gpus`` of the free GPUs of some hosts."""
    shares = []
    for host, room in rooms:
        if min(room, gpus) > 0:
            shares.append((host, min(room, gpus)))
            gpus -= room
    return shares
