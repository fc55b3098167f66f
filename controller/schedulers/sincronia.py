"""Sincronia (SIGCOMM 2018): an order of coflows, carried out by strict priorities.

BSSI (bottleneck, select, scale, iterate) builds the order from last to first. The first K - 1
coflows get a level each, the others share the last. The order is recomputed at every start and end
of a communication step, which the paper evaluates as immediate recomputation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heapreplace
from typing import ClassVar, Generic, TypeVar, cast

from controller.decision import JOB_EVENTS, STEP_EVENTS, ClusterView, Decision, Event, Scheduler
from controller.schedulers.common.coflows import StepBook, iteration_demands
from controller.schedulers.common.stable_levels import stable_levels
from controller.schedulers.crux.compression import first_levels_own
from topologies.fabric import Fabric
from workloads.job import Job

Coflow = TypeVar("Coflow", bound=Hashable)
Port = TypeVar("Port", bound=Hashable)
Number = TypeVar("Number", float, Fraction)


@dataclass(frozen=True)
class BssiRound(Generic[Coflow, Port, Number]):
    """One round of BSSI: the most loaded ``port``, the ``coflow`` put last, the ``weights`` of all after scaling."""

    port: Port
    coflow: Coflow
    weights: Mapping[Coflow, Number]


def bssi(
    demands: Mapping[Coflow, Mapping[Port, Number]],
    weights: Mapping[Coflow, Number] | None = None,
    ties: Sequence[Port] = (),
) -> tuple[Coflow, ...]:
    """Return the coflows in the order of BSSI, first to last (Sincronia section 3.1).

    ``demands``: coflow -> port -> bytes, or seconds where the capacities of ports differ. ``weights``
    default to 1. A coflow without demand is not in the order. Of equally loaded ports the one that
    comes first in ``ties`` is taken, then the one first seen in ``demands``; of coflows with an equal
    claim to be last, the last one in ``demands``. Exact for ``Fraction``.
    """
    return tuple(choice.coflow for choice in bssi_rounds(demands, weights, ties))[::-1]


def bssi_rounds(
    demands: Mapping[Coflow, Mapping[Port, Number]],
    weights: Mapping[Coflow, Number] | None = None,
    ties: Sequence[Port] = (),
) -> Iterator[BssiRound[Coflow, Port, Number]]:
    """Yield the rounds of :func:`bssi`: the coflow of the first round is last in the order."""
    at_port: dict[Port, dict[Coflow, Number]] = {port: {} for port in ties}
    for coflow, demand in demands.items():
        for port, size in demand.items():
            if size > 0:
                at_port.setdefault(port, {})[coflow] = size
    weight = {coflow: cast(Number, 1) if weights is None else weights[coflow] for coflow in demands}
    for port in _most_loaded(at_port):
        here = at_port[port]
        last = min(reversed(here), key=lambda coflow: weight[coflow] / here[coflow])
        price = weight[last] / here[last]
        for coflow, size in here.items():
            weight[coflow] = max(weight[coflow] - price * size, cast(Number, 0))
        for used in demands[last]:
            at_port.get(used, {}).pop(last, None)
        yield BssiRound(port, last, dict(weight))


def _most_loaded(at_port: Mapping[Port, Mapping[Coflow, Number]]) -> Iterator[Port]:
    """Yield the port with the largest load until none is loaded; the caller takes load away in between.

    Loads only fall, so a port is looked at again only when its old load would make it the largest.
    """
    heap = [(-sum(load.values()), rank, port) for rank, (port, load) in enumerate(at_port.items())]
    heapify(heap)
    while heap:
        before, rank, port = heap[0]
        load = sum(at_port[port].values())
        if not load:
            heappop(heap)
        elif before != -load:
            heapreplace(heap, (-load, rank, port))
        else:
            yield port


def sincronia_order(fabric: Fabric, jobs: Sequence[Job]) -> tuple[str, ...]:
    """Return the names of the ``jobs`` that send in the order of BSSI, every one a coflow of one iteration's bytes.

    Ports are the directions of host cables. ``jobs`` are in order of arrival: of equals the later goes last.
    """
    return bssi(iteration_demands(fabric, jobs))


class Sincronia(Scheduler):
    """Levels by the BSSI order of the communication steps under way, by what they still have to send.

    Weights are 1, ports are the directions of host cables, paths are those of ECMP. A job between
    two steps has no entry and so the lowest level. With more steps than levels, level = min(rank, K - 1);
    otherwise levels in force stay where they express the order (:mod:`controller.schedulers.common.stable_levels`).
    """

    name: ClassVar[str] = "sincronia"
    summary: ClassVar[str] = "levels by the BSSI order of the communication steps under way"
    events = JOB_EVENTS | STEP_EVENTS
    decides: ClassVar[tuple[str, ...]] = ("levels",)
    source: ClassVar[str] = "Agarwal et al., SIGCOMM 2018, section 3"

    def __init__(self) -> None:
        self._steps = StepBook()

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return a level per job with a step under way, marked by the sender."""
        order = bssi(self._steps.demands(view))
        wanted = first_levels_own(order, view.level_count)
        levels = stable_levels(order, view.decision.levels, wanted, view.level_count)
        return Decision(levels=levels, sender_marked=True)
