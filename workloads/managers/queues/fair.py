"""Fair queues of virtual clusters (YARN's Fair Scheduler, as Philly uses it): weights, bounds, idle quota lent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import ClassVar, Final

from topologies.limits import OPTION
from workloads.managers.cluster_state import ClusterState
from workloads.managers.gpu_index import Structure
from workloads.managers.interfaces import Queue, QueuedJob
from workloads.managers.jobs import Waiting
from workloads.managers.options import flag, naming, number, shown
from workloads.managers.queues.fair_share import Share, fair_shares
from workloads.managers.queues.queue_tree import ROOT, Order, Path, QueueTree, above, in_words, tree_of, used_by

PREEMPT_ABOVE: Final = 0.8
"""Share of the GPUs in use above which YARN preempts (its ``preemption.cluster-utilization-threshold``)."""


class Fair(Queue):
    """Serves the virtual cluster furthest below its fair share; inside one, first come first served.

    ``shares``: virtual cluster -> {weight, least, most, queues}; others have weight 1. ``queues`` are virtual clusters
    inside it, which divide its share in the same way. What a virtual cluster does not ask for is lent to the others.
    ``backfill``: whether a job that fits may pass one of its own cluster that does not. ``preemption``: whether, with
    more than the share ``preempt_above`` of the GPUs in use, a job that its cluster's fair share covers preempts jobs
    of clusters that keep their fair share without them, at every level, the last to start first.
    """

    name: ClassVar[str] = "fair"
    summary: ClassVar[str] = "virtual clusters by weight, the one furthest below its fair share first"
    uses: Mapping[str, str] = {"virtual_cluster": "the fair share between them"}

    def __init__(
        self,
        *,
        shares: Mapping[str, Mapping[str, object]] | None = None,
        backfill: bool = False,
        preemption: bool = False,
        preempt_above: float = PREEMPT_ABOVE,
    ) -> None:
        with naming(self.name, "shares"):
            self._tree = tree_of({} if shares is None else shares, _share_of)
        self._backfill = flag(self.name, "backfill", backfill)
        self._preemption = flag(self.name, "preemption", preemption)
        self.preempts = self._preemption
        self._preempt_above = number(self.name, "preempt_above", preempt_above, least=0)

    def refusal(self, structure: Structure, job: Waiting) -> str | None:
        """Why ``job`` can never start: it asks for more than its virtual cluster may have at most."""
        named = tuple(job.virtual_cluster.split("."))
        if named in self._tree.children:
            inside = ", ".join(in_words(path) for path in self._tree.children[named])
            found = f"virtual cluster '{job.virtual_cluster}' has others inside"
            return f"job '{job.name}': {found}, expected one of: {inside}"
        for path in above(self._leaf(job.virtual_cluster)):
            most = self._tree.shares.get(path, Share()).most
            if job.gpus > most:
                bound = f"virtual cluster '{in_words(path)}' may have {most:g} at most"
                return f"job '{job.name}' asks for {job.gpus} GPUs, {bound}"
        return None

    def eligible(self, state: ClusterState, waiting: Sequence[Waiting]) -> Sequence[QueuedJob]:
        """The waiting jobs of clusters that may have more, ordered by their shares; a line for each cluster."""
        queues: dict[Path, list[Waiting]] = {}
        for job in waiting:
            queues.setdefault(self._leaf(job.virtual_cluster), []).append(job)
        if not queues:
            return ()
        used = used_by(state, self._leaf)
        active = {path for leaf in (*used, *queues) for path in above(leaf)}
        tree = self._tree.with_leaves((*used, *queues), Share())
        fair = _fair_shares(tree, active, state.present_gpus)
        over = {path: gpus - fair.get(path, 0) for path, gpus in used.items()}
        scarce = self._preemption and state.free_gpus < (1 - self._preempt_above) * state.present_gpus
        givers: dict[Path, tuple[str, ...]] = {}

        def evicts(leaf: Path, job: Waiting) -> tuple[str, ...]:
            if not scarce or used.get(leaf, 0) + job.gpus > fair[leaf]:
                return ()
            if leaf not in givers:
                givers[leaf] = tuple(self._spared(state, over, leaf))
            return givers[leaf]

        def rank(path: Path, now_used: Mapping[Path, int]) -> tuple[float, ...]:
            """Those below their least share first, by how much of it they have; then by use over fair share."""
            have, least = now_used.get(path, 0), tree.shares[path].least
            return (0, have / least) if have < least else (1, have / max(fair.get(path, 0), 1))

        order = Order(tree.children, rank, lambda path: tree.shares[path].most, self._backfill)
        return [
            QueuedJob(job, None if self._backfill else in_words(leaf), evicts(leaf, job))
            for leaf, job in order.serve(queues, used)
        ]

    def limits(self, state: ClusterState, job: Waiting) -> Mapping[str, float]:
        """The ``most`` of the clusters that contain ``job``."""
        if not self._tree.shares:
            return {}
        known = ((path, self._tree.shares.get(path)) for path in above(self._leaf(job.virtual_cluster)))
        return {in_words(path): share.most for path, share in known if share is not None and share.most < inf}

    def _leaf(self, virtual_cluster: str) -> Path:
        return self._tree.leaves.get(virtual_cluster, (virtual_cluster,))

    def _spared(self, state: ClusterState, over: Mapping[Path, int], asker: Path) -> Iterator[str]:
        """Running jobs that make way for one of the cluster ``asker``, the last to start first.

        All clusters that lose one of them keep their fair share: those around it that do not contain ``asker``, too.
        """
        left = dict(over)
        for running in reversed(list(state.running.values())):
            if not running.job.preemptible or running.holding:
                continue
            around, gpus = above(self._leaf(running.job.virtual_cluster)), len(running.gpus)
            losing = [path for path in around if asker[: len(path)] != path]
            if losing and all(left[path] >= gpus for path in losing):
                left |= {path: left[path] - gpus for path in losing}
                yield running.name


def _fair_shares(tree: QueueTree[Share], active: set[Path], gpus: int) -> dict[Path, int]:
    """The fair share of each active queue, level by level: the queues inside one divide its share."""
    fair: dict[Path, int] = {ROOT: gpus}
    for parent in (ROOT, *tree.shares):
        if parent in fair:
            inside = {child: tree.shares[child] for child in tree.children.get(parent, ()) if child in active}
            fair.update(fair_shares(fair[parent], inside))
    return fair


def _share_of(name: str, given: Mapping[str, object]) -> Share:
    unknown = sorted(map(str, given.keys() - {"weight", "least", "most"}))
    if unknown:
        found = f"share of virtual cluster '{name}' has an unknown key '{unknown[0]}'"
        raise ValueError(f"{found}, expected weight, least, most or queues")
    for key, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= OPTION:
            said = repr(value) if isinstance(value, str) else shown(value)
            raise ValueError(f"share of virtual cluster '{name}': {key} is {said}, expected a number up to {OPTION:g}")
    share = Share(**given)  # type: ignore[arg-type]
    if share.weight <= 0 or not 0 <= share.least <= share.most:
        raise ValueError(f"share of virtual cluster '{name}' must have weight > 0 and 0 <= least <= most")
    return share
