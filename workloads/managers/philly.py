"""Philly (Jeon et al., ATC 2019): gangs that ask for locality, and for less of it the longer they wait.

A job wants the fewest hosts under one ToR. Where there is no such place it lets go, backs off and asks again; after
some tries it accepts more hosts, then any ToR. With the queue ``fair`` virtual clusters have quotas that are lent
while idle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from workloads.managers.actions import Requeue
from workloads.managers.cluster import ClusterState
from workloads.managers.consolidated import consolidate, placement_of
from workloads.managers.jobs import Placement, Waiting
from workloads.managers.options import number
from workloads.managers.points import Event, Turn, Want, Wish

WAIT_S = 150.0
BACK_OFF_S = 120.0
TRIES_PER_LEVEL = 5
"""Times and tries are from memory of the paper, which prints none of them."""


class Philly:
    """Asks, holds for ``wait_s``, backs off for ``back_off_s``; nobody is preempted."""

    name: ClassVar[str] = "philly"
    summary: ClassVar[str] = "gangs that back off where there is no local place, and ask again"

    def __init__(self, *, wait_s: float = WAIT_S, back_off_s: float = BACK_OFF_S) -> None:
        waits = (("wait_s", wait_s), ("back_off_s", back_off_s))
        self._again_s = sum(number(self.name, option, value, least=0) for option, value in waits)
        if self._again_s <= 0:
            raise ValueError("options 'wait_s' and 'back_off_s' of philly are both 0, expected one above 0")

    def decide(self, state: ClusterState, turns: Sequence[Turn], event: Event) -> Iterator[Wish]:
        """A wish for each turn; who has no place asks again later."""
        for turn in turns:
            job = turn.job
            later = Requeue(job.name, state.time_s + self._again_s, state.time_s, "no local place")
            yield Want(job, job.gpus, line=turn.line, reason="its turn", otherwise=later)


class Locality:
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
