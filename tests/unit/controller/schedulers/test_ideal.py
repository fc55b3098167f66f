from __future__ import annotations

from collections.abc import Callable

import pytest

from controller.dataplane.rules import RuleBuilder, plans_of
from controller.decision import ClusterView, JobArrived
from controller.schedulers.ecmp import Ecmp
from controller.schedulers.ideal import Ideal
from topologies.fabric import Fabric
from workloads.analysis import self_collision
from workloads.job import Job

RingMaker = Callable[..., Job]
MixMaker = Callable[[Fabric], list[Job]]


def test_a_job_by_itself_meets_nobody_not_even_its_own_flows(clos96_fabric: Fabric, make_ring: RingMaker) -> None:
    job = make_ring("a", clos96_fabric, [0, 2, 4])
    paths = Ideal().decide(ClusterView(clos96_fabric, {"a": job}), JobArrived("a")).paths
    assert self_collision(job, clos96_fabric, paths) == 1.0


def test_it_asks_for_each_job_to_run_alone() -> None:
    assert Ideal.alone


def test_it_decides_paths_and_nothing_else(clos96_fabric: Fabric, make_mix: MixMaker) -> None:
    view = ClusterView(clos96_fabric, {job.name: job for job in make_mix(clos96_fabric)})
    decision = Ideal().decide(view, JobArrived("job1"))
    assert not (decision.levels or decision.rates or decision.shifts or decision.byte_levels)
    plans = plans_of(RuleBuilder(clos96_fabric), clos96_fabric, view.flows, decision, view.level_count)
    assert plans.keys() == {flow.id for flow in view.flows}


def test_on_hashed_paths_a_job_meets_its_own_flows_as_under_ecmp(clos96_fabric: Fabric, make_mix: MixMaker) -> None:
    view = ClusterView(clos96_fabric, {job.name: job for job in make_mix(clos96_fabric)}, seed=3)
    event = JobArrived("job1")
    assert Ideal(paths="ecmp").decide(view, event).paths == Ecmp().decide(view, event).paths


def test_other_paths_than_these_are_refused() -> None:
    with pytest.raises(ValueError, match="option 'paths' of ideal must be least-loaded or ecmp, not 'best'"):
        Ideal(paths="best")
