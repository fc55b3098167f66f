"""A change that the switches do not confirm leaves the controller, and the switches, as they were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controller.dataplane.fake_network import MemoryNetwork
from controller.dataplane.network import NetworkError, RuleBatch
from controller.decision import Measured, Scheduler
from controller.schedulers.registry import create
from controller.service.messages import CommitRequest, JobRequest, ProfileRequest
from controller.service.service import RequestError, Service
from tests.unit.controller.service.test_service import Wandering
from topologies.fabric import Fabric
from workloads.job import Job

SILENT = "switch tor1 did not confirm within 10 s"


class Failing(MemoryNetwork):
    """Carries out half of a batch and then fails: that after ``good`` more, while ``good`` is a number."""

    good: int | None = None

    def apply(self, batch: RuleBatch) -> None:
        if self.good == 0:
            self.good = None
            super().apply(RuleBatch(batch.groups, batch.add[: (len(batch.add) + 1) // 2], batch.delete[:1]))
            raise NetworkError(SILENT)
        self.good = None if self.good is None else self.good - 1
        super().apply(batch)

    def reset(self, fabric: Fabric) -> None:
        if self.good == 0:
            self.good = None
            for switch in list(self.tables)[:2]:
                self.tables[switch].entries.clear()
            raise NetworkError(SILENT)
        super().reset(fabric)


Change = Callable[[Service, Callable[..., Job], Fabric], Any]

CHANGES: dict[str, Change] = {
    "arrival": lambda service, ring, fabric: service.post_job(JobRequest(ring("c", fabric, [0, 1], first_port=40000))),
    "prepared arrival": lambda service, ring, fabric: service.post_job(
        JobRequest(ring("c", fabric, [0, 1], first_port=40000), "prepare")
    ),
    "departure": lambda service, ring, fabric: service.delete_job("a"),
    "prepared departure": lambda service, ring, fabric: service.delete_job("a", "prepare"),
    "profile": lambda service, ring, fabric: service.post_profile(ProfileRequest("a", Measured(1e12, 0.1, 1.0))),
    "commit": lambda service, ring, fabric: service.post_commit(CommitRequest(("a/0/0",))),
    "fabric": lambda service, ring, fabric: service.put_fabric(fabric),
}


def held(service: Service) -> tuple[Any, ...]:
    """The state, what every switch must hold, and what it holds."""
    switches = service.get_rules().rules
    rules = {switch: {(rule.match, rule.actions, rule.cookie) for rule in found} for switch, found in switches.items()}
    return service.get_state(), {switch: set(service.rules_on(switch).add) for switch in switches}, rules


def running(fabric: Fabric, ring: Callable[..., Job], scheduler: Scheduler) -> tuple[Service, Failing]:
    """Two jobs, the second prepared, so that flows of the first wait for a commit."""
    network = Failing()
    service = Service(network, scheduler)
    service.put_fabric(fabric)
    service.post_job(JobRequest(ring("a", fabric, [0, 2])))
    service.post_job(JobRequest(ring("b", fabric, [1, 3], first_port=30000), "prepare"))
    return service, network


@pytest.mark.parametrize("scheduler", [Wandering, lambda: create("ecmp-switch")], ids=["wandering", "ecmp-switch"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_fails_at_any_step_leaves_everything_as_it_was(
    small_fabric: Fabric, make_ring: Callable[..., Job], change: str, scheduler: Callable[[], Scheduler]
) -> None:
    tried = 0
    for step in range(4):
        service, network = running(small_fabric, make_ring, scheduler())
        before = held(service)
        network.good = step
        try:
            CHANGES[change](service, make_ring, small_fabric)
        except RequestError as error:
            assert (error.status, str(error)) == (504, SILENT)
            assert held(service) == before
            tried += 1
            CHANGES[change](service, make_ring, small_fabric)
    assert tried or (change == "commit" and scheduler is not Wandering) or change == "profile"


def test_a_job_that_could_not_leave_still_runs_and_can_leave_later(
    small_fabric: Fabric, make_ring: Callable[..., Job]
) -> None:
    service, network = running(small_fabric, make_ring, create("ecmp"))
    network.good = 0
    with pytest.raises(RequestError, match="did not confirm"):
        service.delete_job("a")
    assert service.get_state().jobs == ("a", "b")
    service.delete_job("a")
    assert service.get_state().jobs == ("b",)
    assert service.get_verification().mismatches == ()


def test_switches_that_are_away_are_left_out_of_the_undoing(
    small_fabric: Fabric, make_ring: Callable[..., Job]
) -> None:
    class Leaving(Failing):
        def apply(self, batch: RuleBatch) -> None:
            failing = self.good == 0
            try:
                super().apply(batch)
            except NetworkError:
                if failing:
                    self.away.add("tor1")
                raise

    network = Leaving()
    service = Service(network, create("ecmp"))
    service.put_fabric(small_fabric)
    service.post_job(JobRequest(make_ring("a", small_fabric, [0, 2])))
    before = held(service)
    network.good = 0
    with pytest.raises(RequestError, match="did not confirm"):
        service.delete_job("a")
    after = held(service)
    assert (after[0].jobs, after[1]) == (before[0].jobs, before[1])
    assert {switch: rules for switch, rules in after[2].items() if switch != "tor1"} == {
        switch: rules for switch, rules in before[2].items() if switch != "tor1"
    }
