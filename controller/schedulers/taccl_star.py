"""TACCL* as Crux defines it (section 4.4, footnote 3), in two rules; it is not TACCL, which synthesises collectives.

Each job takes the least congested links, and traffic that travels farther goes first. Crux does not
define distance: here the option ``distance`` does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Final, Literal

from controller.decision import ClusterView, Decision, Event, Scheduler
from controller.schedulers.common.least_congested import LeastCongestedJobs
from controller.schedulers.common.paths_by_job import PathsByJob
from controller.schedulers.common.stable_levels import kept_levels
from controller.schedulers.crux.compression import first_levels_own
from controller.schedulers.varys import even_levels
from topologies.fabric import Fabric, Path
from workloads.job import Flow, Job

Distance = Literal["hops", "cost"]

LATENCY_S: Final = 2.6e-6
"""Fixed cost of a link in a transfer's cost: alpha of an inter-node link in TACCL's example profile, in seconds."""


def taccl_star_paths(fabric: Fabric, jobs: Sequence[Job]) -> dict[str, Path]:
    """Return flow id -> path, the jobs placed in the given order (that of arrival).

    Each flow takes the candidate whose worst link needs the fewest seconds for all bytes per
    iteration placed on it, the flow's own included; the lowest index on a tie.
    """
    placed = LeastCongestedJobs(fabric, lambda _job, _paths: 0.0).follow({job.name: job for job in jobs})
    return {flow: path for each in placed.values() for flow, path in each.paths.items()}


def transmission_distance(fabric: Fabric, job: Job, paths: Mapping[str, Path], distance: Distance = "hops") -> float:
    """Return how far the traffic of ``job`` travels: the largest over its flows that send; 0 if none does.

    ``hops``: links of the path. ``cost``: seconds, the sum over its links of a fixed latency and the
    time for the flow's bytes per iteration.
    """
    sending = (flow for flow in job.flows if flow.bytes > 0)
    if distance == "hops":
        return max((len(paths[flow.id]) for flow in sending), default=0)
    return max((_cost(fabric, flow, paths[flow.id]) for flow in sending), default=0.0)


def _cost(fabric: Fabric, flow: Flow, path: Path) -> float:
    return sum(LATENCY_S + 8 * flow.bytes / fabric.links[link].capacity for link in path)


def taccl_star_order(
    fabric: Fabric, jobs: Sequence[Job], paths: Mapping[str, Path], distance: Distance = "hops"
) -> tuple[str, ...]:
    """Return the names of the ``jobs`` that send, the longest distance first; ties in the given order (of arrival)."""
    return farthest_first({job.name: transmission_distance(fabric, job, paths, distance) for job in jobs})


def farthest_first(far: Mapping[str, float]) -> tuple[str, ...]:
    """Return the jobs that send, the longest distance of ``far`` first; ties in its order."""
    return tuple(sorted((name for name in far if far[name] > 0), key=lambda name: -far[name]))


def first_own(far: Mapping[str, float], count: int) -> dict[str, int]:
    """Return job -> level: the farthest ``count`` - 1 jobs have a level each, the others share the last."""
    return first_levels_own(farthest_first(far), count)


def even(far: Mapping[str, float], count: int) -> dict[str, int]:
    """Return job -> level: the jobs, the farthest first, split evenly over ``count`` levels."""
    return even_levels(farthest_first(far), count)


def by_distance(far: Mapping[str, float], count: int) -> dict[str, int]:
    """Return job -> level: jobs that are as far share one; with more than ``count`` distances the nearest the last."""
    distances = sorted({distance for distance in far.values() if distance > 0}, reverse=True)
    rank = {distance: place for place, distance in enumerate(distances)}
    return {name: min(rank[far[name]], count - 1) for name in farthest_first(far)}


_COMPRESSIONS: Final[Mapping[str, Callable[[Mapping[str, float], int], dict[str, int]]]] = {
    "first": first_own,
    "even": even,
    "distance": by_distance,
}


class TacclStar(Scheduler):
    """Least congested paths in order of arrival, levels by falling transmission distance.

    ``distance``: ``hops`` or ``cost`` (:func:`transmission_distance`). ``compression`` to levels: ``first``
    gives the first K - 1 jobs a level each and the rest the last, ``even`` splits them evenly, both in the order of
    arrival where jobs are as far; with ``distance`` such jobs share a level. The footnote decides none of this.
    """

    name: ClassVar[str] = "taccl-star"
    summary: ClassVar[str] = "least congested paths, longest transmission distance first"
    decides: ClassVar[tuple[str, ...]] = ("paths", "levels")
    source: ClassVar[str] = "Cao et al., SIGCOMM 2024, section 4.4, footnote 3"

    def __init__(self, *, distance: str = "hops", compression: str = "first") -> None:
        if distance not in ("hops", "cost"):
            raise ValueError(f"option 'distance' of taccl-star must be hops or cost, not '{distance}'")
        if compression not in _COMPRESSIONS:
            raise ValueError(f"option 'compression' of taccl-star must be first, even or distance, not '{compression}'")
        self._distance: Distance = "hops" if distance == "hops" else "cost"
        self._compress = _COMPRESSIONS[compression]
        self._kept: LeastCongestedJobs | None = None

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return a path per flow and a level per job that sends."""
        if self._kept is None or self._kept.fabric is not view.fabric:
            distance_of = partial(transmission_distance, view.fabric, distance=self._distance)
            self._kept = LeastCongestedJobs(view.fabric, distance_of)
        placed = self._kept.follow(view.jobs)
        far = {name: each.distance for name, each in placed.items()}
        paths = PathsByJob({name: each.paths for name, each in placed.items()})
        return Decision(paths=paths, levels=kept_levels(self._compress(far, view.level_count), view.decision.levels))
