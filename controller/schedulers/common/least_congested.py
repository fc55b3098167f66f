"""Jobs placed one after the other on their least congested paths, kept from event to event (TACCL*).

A job's choice depends only on the bytes that those before it left on its candidate links. Where these are as before, it
keeps its paths, and what it leaves is as before: the result is that of placing all jobs again, to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from controller.schedulers.crux.chosen_paths import ChosenPaths
from controller.schedulers.crux.path_index import FabricIndex, Floats, JobIndex, Numbers
from topologies.fabric import Fabric, Path
from workloads.job import Job


@dataclass(frozen=True, eq=False, slots=True)
class LeastCongested:
    """A job on ``paths``; the bytes on its candidate links before it was placed (``found``) and after (``left``).

    ``distance``: how far its traffic travels on them.
    """

    index: JobIndex
    found: Floats
    left: Floats
    paths: ChosenPaths
    distance: float


class LeastCongestedJobs:
    """Running jobs on their least congested paths, in the order of their arrival."""

    def __init__(self, fabric: Fabric, distance_of: Callable[[Job, Mapping[str, Path]], float]) -> None:
        self.fabric, self._distance_of = fabric, distance_of
        self._index = FabricIndex.of(fabric)
        self._placed: dict[str, LeastCongested] = {}

    def follow(self, jobs: Mapping[str, Job]) -> Mapping[str, LeastCongested]:
        """Place ``jobs`` in their order; a job that nothing has changed for has the same placement as before."""
        load, placed = np.zeros(self._index.closed + 1), dict[str, LeastCongested]()
        for name, job in jobs.items():
            known = self._placed.get(name)
            index = known.index if known is not None and known.index.job is job else self._index.job(job)
            found = load[index.touched]
            if known is not None and known.index is index and np.array_equal(known.found, found):
                load[index.touched] = known.left
                placed[name] = known
            else:
                paths = index.paths(least_congested_choice(index, load))
                distance = self._distance_of(job, paths)
                placed[name] = LeastCongested(index, found, load[index.touched], paths, distance)
        self._placed = placed
        return placed


def least_congested_choice(job: JobIndex, load: Floats) -> Numbers:
    """Return flow -> candidate whose worst link needs the fewest seconds for its ``load`` and the flow, in bytes.

    The lowest index wins a tie. The flows are added to ``load`` (bytes per link), one after the other.
    """
    index, choice = job.index, np.zeros(len(job.bytes), np.intp)
    for batch in job.batches:
        sizes = job.bytes.take(batch.flows)
        congestion = (load.take(batch.candidates) + sizes[None, :, None]) / index.capacity.take(batch.candidates)
        congestion[batch.candidates == index.closed] = np.inf
        taken = np.maximum.reduce(congestion).argmin(axis=1)
        load[batch.candidates[:, np.arange(len(taken)), taken]] += sizes
        choice[batch.flows] = taken
    return choice
