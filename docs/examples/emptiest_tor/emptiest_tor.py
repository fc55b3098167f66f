"""A placer for the testbed, in a package of its own: jobs go where most GPUs are free."""

import numpy as np

from testbed.plugins import ClusterState, Placement, Placer, Waiting


class EmptiestTor(Placer):
    """Under the ToR with most free GPUs first, then under the next."""

    name = "emptiest-tor"
    summary = "under the ToRs with most free GPUs"

    def __init__(self, *, whole_hosts: bool = False) -> None:
        if not isinstance(whole_hosts, bool):
            raise ValueError(f"option 'whole_hosts' of emptiest-tor must be true or false, not '{whole_hosts}'")
        self._whole_hosts = whole_hosts

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        """Return the GPUs, or None if the job has to wait."""
        structure = state.structure
        room = structure.by_tor(state.free_by_host)
        usable = state.free.copy()
        if self._whole_hosts:
            usable &= (state.free_by_host == structure.gpus_of_host)[structure.host_of_gpu]
        free = np.flatnonzero(usable)
        if len(free) < gpus:
            return None
        order = np.argsort(-room[structure.tor_of_gpu[free]], kind="stable")
        return Placement(structure.in_ring(free[order[:gpus]]))
