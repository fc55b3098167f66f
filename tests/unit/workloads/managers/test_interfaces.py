"""The four interfaces: a subclass has the defaults, and a part that is no subclass works without them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf

import pytest

from topologies.clos import clos96
from topologies.fabric import Fabric
from workloads.managers.cluster_state import ClusterState, empty_cluster
from workloads.managers.interfaces import (
    Capacity,
    CapacityChanged,
    Event,
    PlacementRequest,
    Placer,
    Policy,
    Queue,
    QueuedJob,
)
from workloads.managers.jobs import Placement, Waiting
from workloads.managers.ledger import Ledger
from workloads.managers.manager import Manager

FABRIC = clos96()
EMPTY = empty_cluster(FABRIC)


class PlainQueue:
    name, summary = "plain", ""

    def eligible(self, state: ClusterState, waiting: Sequence[Waiting]) -> list[QueuedJob]:
        return [QueuedJob(job) for job in waiting]


class PlainPolicy:
    name, summary = "plain", ""

    def decide(self, state: ClusterState, queued: Sequence[QueuedJob], event: Event) -> list[PlacementRequest]:
        return [PlacementRequest(entry.job, entry.job.gpus) for entry in queued]


class PlainPlacer:
    name, summary = "plain", ""

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement:
        return Placement(state.fabric.gpus[:gpus])


class PlainCapacity:
    name, summary = "plain", ""

    def changes(self, fabric: Fabric) -> Iterator[CapacityChanged]:
        return iter(())


class OwnQueue(PlainQueue, Queue):
    pass


class OwnPolicy(PlainPolicy, Policy):
    pass


class OwnPlacer(PlainPlacer, Placer):
    pass


class OwnCapacity(PlainCapacity, Capacity):
    pass


PLAIN = Manager(PlainQueue(), PlainPolicy(), PlainPlacer(), PlainCapacity())  # type: ignore[arg-type]
OWN = Manager(OwnQueue(), OwnPolicy(), OwnPlacer(), OwnCapacity())


@pytest.mark.parametrize("manager", [PLAIN, OWN])
def test_a_part_needs_nothing_but_its_method(manager: Manager) -> None:
    assert not manager.changes_running and not manager.measures_packs
    assert manager.refusal(EMPTY.structure, Waiting("one", 2)) is None
    assert manager.wakes_at(EMPTY, []) == [inf, inf]
    ledger = Ledger(manager, FABRIC)
    ledger.submit(Waiting("one", 2))
    (start,) = ledger.decide(0.0)
    assert (start.job, start.gpus, ledger.next_s()) == ("one", FABRIC.gpus[:2], inf)


def test_what_a_part_says_counts_whether_it_is_a_subclass_or_not() -> None:
    class Busy(PlainPolicy):
        changes_running = True

        def wakes_at(self, state: ClusterState, waiting: Sequence[Waiting]) -> float:
            return 7.0

        def refusal(self, structure: object, job: Waiting) -> str:
            return "no"

    manager = Manager(OwnQueue(), Busy(), OwnPlacer(), OwnCapacity())  # type: ignore[arg-type]
    assert manager.changes_running and manager.wakes_at(EMPTY, []) == [inf, 7.0]
    assert manager.refusal(EMPTY.structure, Waiting("one", 2)) == "no"


@pytest.mark.parametrize("interface", [Queue, Policy, Placer, Capacity])
def test_a_subclass_without_the_method_cannot_be_made(interface: type) -> None:
    with pytest.raises(TypeError, match="abstract"):
        interface()
