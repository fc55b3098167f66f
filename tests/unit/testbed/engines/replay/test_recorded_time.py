"""A job alone takes its recorded time, whatever the phases of its model, wherever it is, by jump and step by step."""

from __future__ import annotations

from typing import Final

import pytest

from controller.schedulers.crux.intensity import profile
from controller.schedulers.registry import create
from testbed.engines.replay.inputs import TraceJobs
from testbed.engines.replay.manager_adapter import ManagedPlacing
from testbed.engines.replay.replay import Replay
from testbed.engines.replay.running_job import ReplayRequest
from topologies.clos import clos
from topologies.fabric import Fabric
from workloads.managers.cluster_state import ClusterState
from workloads.managers.interfaces import Placer
from workloads.managers.jobs import Placement, Waiting
from workloads.managers.manager import Manager
from workloads.managers.registry import manager
from workloads.models.catalogue import CATALOGUE
from workloads.periodic_job import PeriodicJob

RECORDED_S: Final = 300.0


def fabric_of(intra_host: str = "instant") -> Fabric:
    return clos(
        hosts=4,
        gpus_per_host=8,
        nics_per_host=4,
        tors=2,
        aggregations=8,
        port_rate=100e9,
        fabric_rate=400e9,
        intra_host=intra_host,  # type: ignore[arg-type]
    )


FABRIC: Final = fabric_of()


class EveryThird(Placer):
    """Every third free GPU in turn, so that hosts have unequal parts of a job."""

    name = "every-third"

    def place(self, state: ClusterState, job: Waiting, gpus: int) -> Placement | None:
        free = [gpu for host in state.structure.hosts for gpu in state.free_on(host)]
        chosen = [*free[::3], *free[1::3], *free[2::3]][:gpus]
        return Placement(tuple(sorted(chosen, key=free.index)))


def scattered() -> Manager:
    parts = manager("none")
    return Manager(parts.queue, parts.policy, EveryThird(), parts.capacity)


def took_s(model: str, gpus: int, jump: bool, by: Manager, fabric: Fabric = FABRIC) -> float:
    placing = ManagedPlacing(by, fabric, TraceJobs(fabric).stage_times)
    request = ReplayRequest("one", 0.0, RECORDED_S, gpus, model)
    (done,) = Replay(fabric, create("crux"), placing, [request], TraceJobs(fabric).build, jump=jump).run().jobs
    assert done.end_s is not None and done.start_s is not None
    return done.end_s - done.start_s


@pytest.mark.parametrize("model", sorted(CATALOGUE))
def test_a_job_alone_takes_its_recorded_time(model: str) -> None:
    for gpus in (1, 2, 8, 12, 16, 32):
        assert took_s(model, gpus, True, manager("consolidated")) == pytest.approx(RECORDED_S, rel=1e-9)
        # Step by step it ends in the middle of an iteration, not at a mean rate: at most that much early or late.
        iteration_s = sum(TraceJobs(FABRIC).stage_times(ReplayRequest("one", 0.0, RECORDED_S, gpus, model)))
        assert took_s(model, gpus, False, manager("consolidated")) == pytest.approx(RECORDED_S, abs=iteration_s)


@pytest.mark.parametrize("model", sorted(CATALOGUE))
def test_no_job_is_faster_than_alone_where_its_hosts_have_unequal_parts(model: str) -> None:
    for gpus in (3, 7, 11):
        assert took_s(model, gpus, True, scattered()) >= RECORDED_S * (1 - 1e-9)


@pytest.mark.parametrize("model", ["ctr", "moe", "crux-bert"])
def test_what_moves_inside_a_host_takes_its_time_too(model: str) -> None:
    for gpus in (8, 16):
        assert took_s(model, gpus, True, manager("consolidated"), fabric_of("pcie")) >= RECORDED_S * (1 - 1e-9)


@pytest.mark.parametrize("model", sorted(CATALOGUE))
def test_a_profile_says_the_same_of_an_iteration_as_its_phases(model: str) -> None:
    build = TraceJobs(FABRIC).build
    for gpus in (1, 8, 12, 32):
        job = build(ReplayRequest("one", 0.0, 1.0, gpus, model), FABRIC.gpus[:gpus])
        seen = profile(job, FABRIC)
        as_one = PeriodicJob(seen.compute_s, seen.lead_s, {0: seen.communication_s})
        assert as_one.period_s == pytest.approx(seen.iteration_s, rel=1e-9)
