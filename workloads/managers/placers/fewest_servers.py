"""Placers that spread a job over as few servers as can be, those with most free GPUs first.

``equal-split`` is the placement of Optimus (Peng et al., EuroSys 2018, section 4.2): its theorem says that a job sends
least between servers if it is on the fewest servers that hold it, with equally many of its parts on each.
``most-free`` is that of the Optimus and Tiresias in Pollux's simulator (Qiao et al., OSDI 2021): the emptiest server is
filled first, then the next.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from workloads.managers.cluster_state import ClusterState
from workloads.managers.gpu_index import Ints
from workloads.managers.interfaces import Placer
from workloads.managers.jobs import Placement, Waiting
from workloads.managers.placers.consolidated import Share, placement_of


class MostFree(Placer):
    """The server with most free GPUs first, filled, then the next."""

    name: ClassVar[str] = "most-free"
    summary: ClassVar[str] = "the server with most free GPUs is filled first, then the next"

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """On the fewest servers, with the rest on the last of them."""
        if gpus > state.free_gpus:
            return None
        return placement_of(state, filled(state.free_by_host, gpus))


class EqualSplit(Placer):
    """The fewest servers that hold equal parts of a job; where none do, the fewest that hold it."""

    name: ClassVar[str] = "equal-split"
    summary: ClassVar[str] = "fewest servers with equally many GPUs of the job on each (Optimus)"

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """In parts that differ by one GPU at most, if there is room for them."""
        if gpus > state.free_gpus:
            return None
        shares = split_equally(state.free_by_host, gpus)
        return placement_of(state, filled(state.free_by_host, gpus) if shares is None else shares)


def filled(free: Ints, gpus: int) -> list[Share]:
    """Return shares of ``gpus`` GPUs, the roomiest server first; of equal ones the first. There must be room."""
    shares: list[Share] = []
    for host in np.argsort(-free, kind="stable").tolist():
        taken = min(gpus, int(free[host]))
        if not taken:
            break
        shares.append((host, taken))
        gpus -= taken
    return shares


def split_equally(free: Ints, gpus: int) -> list[Share] | None:
    """Return shares that differ by 1 at most, on the fewest servers that have room for them; None if none have."""
    order = np.argsort(-free, kind="stable")
    ordered = free[order]
    for servers in range(-(-gpus // max(1, int(ordered[0]))), min(gpus, len(free)) + 1):
        parts = np.full(servers, gpus // servers)
        parts[: gpus % servers] += 1
        if (ordered[:servers] >= parts).all():
            return list(zip(order[:servers].tolist(), parts.tolist(), strict=True))
    return None
