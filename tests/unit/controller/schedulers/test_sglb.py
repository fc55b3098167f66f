"""SGLB: flows go where fewest flows are, and stay there while that is so."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from controller.decision import ClusterView, Decision, JobArrived, JobDeparted
from controller.schedulers.sglb import Sglb, best_paths
from topologies.clos import clos
from topologies.fabric import Path
from workloads.build import JobSpec, build_jobs
from workloads.job import Job

FABRIC = clos(hosts=8, tors=2, aggregations=8, gpus_per_host=1, nics_per_host=1, port_rate=100e9, fabric_rate=100e9)
PAIRS = [JobSpec(f"pair{n}", "bert", placement=(f"h{n}g0", f"h{n + 4}g0")) for n in range(4)]
JOBS = build_jobs(PAIRS, FABRIC)


def view_of(jobs: tuple[Job, ...], paths: dict[str, Path] | None = None) -> ClusterView:
    return ClusterView(FABRIC, {job.name: job for job in jobs}, decision=Decision(paths=paths or {}))


def flows_on(paths: dict[str, Path]) -> Counter[str]:
    return Counter(link for path in paths.values() for link in path[1:-1])


def test_the_best_spines_have_the_fewest_flows_up_and_down() -> None:
    candidates = FABRIC.candidate_paths("h0n0p0", "h4n0p0")
    flows = Counter({"tor0->agg0": 1, "agg1->tor1": 2, "tor0->agg2": 1, "agg2->tor1": 3})
    assert best_paths(candidates, flows, 3) == candidates[3:6]
    assert best_paths(candidates, flows, 7) == (*candidates[:2], *candidates[3:])


def test_flows_do_not_share_a_spine_while_there_are_idle_ones() -> None:
    decision = Sglb(spines=1).decide(view_of(JOBS), JobArrived("pair3"))
    assert max(flows_on(dict(decision.paths)).values()) == 1


def test_a_flow_stays_on_its_spine_when_others_come_and_go() -> None:
    scheduler = Sglb()
    before = scheduler.decide(view_of(JOBS[:3]), JobArrived("pair2")).paths
    after = scheduler.decide(view_of(JOBS, dict(before)), JobArrived("pair3")).paths
    left = scheduler.decide(view_of(JOBS[1:], dict(after)), JobDeparted("pair0")).paths
    assert {flow: after[flow] for flow in before} == before
    assert left == {flow: path for flow, path in after.items() if flow in left}


def test_the_hash_is_that_of_the_flow_and_the_seed() -> None:
    view = view_of(JOBS)
    first, again = (Sglb().decide(view, JobArrived("pair3")).paths for _ in range(2))
    other = Sglb().decide(replace(view, seed=2), JobArrived("pair3")).paths
    assert first == again
    assert first != other


@pytest.mark.parametrize("spines", [0, True, 1.5, "two"])
def test_a_wrong_number_of_spines_is_refused(spines: object) -> None:
    with pytest.raises(ValueError, match="option 'spines' of sglb must be a whole number of at least 1"):
        Sglb(spines=spines)  # type: ignore[arg-type]
