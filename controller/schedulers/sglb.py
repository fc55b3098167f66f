"""SGLB, the load balancer of MonkeyTree (arXiv 2602.08296): a flow takes one of the spines that carry fewest flows.

The score of a spine for a flow is the number of flows on its way up plus that on its way down. The best few are kept,
and a hash of the flow chooses among them, so that a flow stays where it is while the best do not change. The authors
look again every 10 ms; here it is at every arrival and departure, because connections live as long as their job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Final

from controller.decision import ClusterView, Decision, Event, Scheduler
from controller.ecmp_hash import five_tuple_of, hash_at
from topologies.fabric import Path

_SALT: Final = -1
"""Of the hash among the best spines: that of no switch."""


def best_paths(candidates: Sequence[Path], flows: Counter[str], spines: int) -> tuple[Path, ...]:
    """Return the ``spines`` paths with the fewest ``flows`` on links between switches, in the order of ``candidates``.

    Where paths tie for the last place, the first of them is taken.
    """
    scores = [sum(flows[link] for link in path[1:-1]) for path in candidates]
    kept = sorted(sorted(range(len(candidates)), key=scores.__getitem__)[:spines])
    return tuple(candidates[place] for place in kept)


class Sglb(Scheduler):
    """Paths by the number of flows on them, one level for all. ``spines``: how many of the best are kept.

    Flows are looked at job by job in order of arrival. A flow keeps the path it has while that is among the best.
    """

    name: ClassVar[str] = "sglb"
    summary: ClassVar[str] = "a hash among the spines that carry fewest flows, one level for all"
    decides: ClassVar[tuple[str, ...]] = ("paths",)
    source: ClassVar[str] = "MonkeyTree, arXiv 2602.08296, 2026"

    def __init__(self, *, spines: int = 4) -> None:
        if isinstance(spines, bool) or not isinstance(spines, int) or spines < 1:
            raise ValueError(f"option 'spines' of sglb must be a whole number of at least 1, not '{spines}'")
        self._spines = spines

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return a path per flow: flows without one come after those that have one."""
        candidates = {flow.id: view.fabric.candidate_paths(flow.source, flow.target) for flow in view.flows}
        paths = {flow: path for flow, those in candidates.items() if (path := view.decision.paths.get(flow)) in those}
        flows = Counter(link for path in paths.values() for link in path)
        for flow in view.flows:
            own = paths.pop(flow.id, ())
            flows.subtract(own)
            best = best_paths(candidates[flow.id], flows, self._spines)
            if own not in best:
                own = best[hash_at(_SALT, five_tuple_of(view.fabric, flow), view.seed, len(best))]
            flows.update(own)
            paths[flow.id] = own
        return Decision(paths=paths)
