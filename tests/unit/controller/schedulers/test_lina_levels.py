"""Lina's levels: a job's all-to-alls before its own gradients, and no job before another."""

from __future__ import annotations

from controller.decision import ClusterView, Decision, JobArrived
from controller.schedulers.lina import Lina, all_to_all_flows
from topologies.clos import clos96
from workloads.build import JobSpec, build_jobs

FABRIC = clos96()


def test_flows_of_all_to_alls_have_the_highest_level_and_all_others_the_lowest() -> None:
    jobs = build_jobs([JobSpec("moe", "moe", 32), JobSpec("bert", "bert", 16)], FABRIC)
    view = ClusterView(FABRIC, {job.name: job for job in jobs}, 8, 1, Decision())
    levels = Lina().decide(view, JobArrived("bert")).levels
    moe, bert = jobs
    first = all_to_all_flows(moe)
    assert 0 < len(first) < len(moe.flows) and not all_to_all_flows(bert)
    assert {flow.id for flow in moe.flows if levels[flow.id] == 0} == first
    assert {levels[flow.id] for flow in bert.flows} == {7}
