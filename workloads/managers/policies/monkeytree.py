"""MonkeyTree (arXiv 2602.08296): jobs move so that the next one finds a place with few fragments under each ToR."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from workloads.managers.actions import Migrate
from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Event, PlacementRequest, Policy, PolicyAction, QueuedJob
from workloads.managers.options import number
from workloads.managers.placers.monkeytree.fragments import plan
from workloads.managers.placers.monkeytree.placer import checked_fragments, gpus_under, racks_of


class MonkeyTreeMoves(Policy):
    """Gangs. Where a job finds no bounded place though enough GPUs are free, others migrate, as few GPUs as possible.

    ``fragments``: as of the placer. ``migrate_s``: seconds that a migration costs a job.
    """

    name: ClassVar[str] = "monkeytree"
    summary: ClassVar[str] = "gangs; jobs migrate so that the next one finds a place with few fragments"
    changes_running: ClassVar[bool] = True
    needs_remaining: ClassVar[bool] = False

    def __init__(self, *, fragments: int = 2, migrate_s: float = 30.0) -> None:
        self._most = checked_fragments("monkeytree", fragments)
        self._migrate_s = number(self.name, "migrate_s", migrate_s, least=0)

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> Iterator[PolicyAction]:
        """Migrations, if the first job that cannot start needs them, and a request for each job that fits."""
        for entry in queued:
            if entry.job.gpus > state.free_gpus and entry.line is None and not entry.evicts:
                continue
            found = plan(racks_of(state, self._most), entry.job.gpus)
            for name, where in () if found is None else found.moves:
                own = state.held[name]
                free = state.free.copy()
                free[own] = True
                gpus = gpus_under(state.structure, free, where)
                action = Migrate(name, gpus, state.time_s, f"makes room for {entry.job.name}", pause_s=self._migrate_s)
                state = state.after(action)
                yield action
            yield PlacementRequest(entry.job, entry.job.gpus, line=entry.line, reason="its turn")
            if found is not None:
                gpus = gpus_under(state.structure, state.free, found.where)
                state = state.start(entry.job, gpus)
