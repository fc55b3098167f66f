from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

import pytest

from controller.dataplane.rules import RuleBuilder, plans_of
from controller.decision import ClusterView, JobArrived
from controller.schedulers.crux.compression import first_levels_own
from controller.schedulers.taccl_star import (
    LATENCY_S,
    Distance,
    TacclStar,
    by_distance,
    first_own,
    taccl_star_order,
    taccl_star_paths,
    transmission_distance,
)
from topologies.fabric import Fabric, Path
from workloads.job import Job

RingMaker = Callable[..., Job]
MixMaker = Callable[[Fabric], list[Job]]


def flow_by_flow(fabric: Fabric, jobs: Sequence[Job]) -> dict[str, Path]:
    """The paths by their definition: each flow the candidate whose worst link needs the fewest seconds with it."""
    load, paths = dict[str, float](), dict[str, Path]()

    def congestion(path: Path, size: float) -> float:
        return max((load.get(link, 0.0) + size) / fabric.links[link].capacity for link in path)

    for flow in (flow for job in jobs for flow in job.flows):
        candidates = fabric.candidate_paths(flow.source, flow.target)
        paths[flow.id] = min(candidates, key=lambda path, size=flow.bytes: congestion(path, size))
        load |= {link: load.get(link, 0.0) + flow.bytes for link in paths[flow.id]}
    return paths


def test_each_flow_takes_the_path_with_the_least_on_its_worst_link(small_fabric: Fabric, make_ring: RingMaker) -> None:
    first = make_ring("first", small_fabric, [0, 2], size=1e9)
    small = make_ring("small", small_fabric, [1, 3], size=1e8, first_port=30000)
    third = make_ring("third", small_fabric, [1, 3], size=1e8, first_port=31000)
    paths = taccl_star_paths(small_fabric, [first, small, third])
    assert [paths[f"{name}/0/0"][1] for name in ("first", "small", "third")] == [
        "tor0->agg0",
        "tor0->agg1",
        "tor0->agg1",
    ]


def test_the_job_that_arrived_first_chooses_first(small_fabric: Fabric, make_ring: RingMaker) -> None:
    jobs = [
        make_ring("strong", small_fabric, [0, 2], flops=1e16),
        make_ring("weak", small_fabric, [1, 3], flops=1e14, first_port=30000),
    ]
    for order in (jobs, jobs[::-1]):
        assert taccl_star_paths(small_fabric, order)[f"{order[0].name}/0/0"][1] == "tor0->agg0"


def test_distance_is_the_longest_path_in_links(small_fabric: Fabric, make_ring: RingMaker) -> None:
    near, far = make_ring("near", small_fabric, [0, 1]), make_ring("far", small_fabric, [0, 1, 2])
    paths = taccl_star_paths(small_fabric, [near, far])
    assert transmission_distance(small_fabric, near, paths) == 2
    assert transmission_distance(small_fabric, far, paths) == 4


def test_distance_as_cost_adds_latency_and_transfer_time_of_every_link(
    small_fabric: Fabric, make_ring: RingMaker
) -> None:
    job = make_ring("near", small_fabric, [0, 1], size=1e9)
    paths = taccl_star_paths(small_fabric, [job])
    assert transmission_distance(small_fabric, job, paths, "cost") == pytest.approx(2 * (LATENCY_S + 0.08))


def test_longer_distances_go_first_and_ties_by_arrival(small_fabric: Fabric, make_ring: RingMaker) -> None:
    jobs = [
        make_ring(name, small_fabric, hosts, size=size, first_port=port)
        for name, hosts, size, port in (
            ("near", [0, 1], 9e9, 20000),
            ("far", [0, 2], 1e9, 21000),
            ("later", [1, 3], 2e9, 22000),
        )
    ]
    paths = taccl_star_paths(small_fabric, jobs)
    assert taccl_star_order(small_fabric, jobs, paths) == ("far", "later", "near")
    assert taccl_star_order(small_fabric, jobs, paths, "cost") == ("near", "later", "far")


def test_a_job_that_sends_nothing_has_no_distance_and_no_level(small_fabric: Fabric, make_ring: RingMaker) -> None:
    quiet = Job("quiet", "test", ("h3g0",), (), (), 1e15, 10)
    jobs = {"quiet": quiet, "loud": make_ring("loud", small_fabric, [0, 2])}
    assert transmission_distance(small_fabric, quiet, {}) == 0
    assert TacclStar().decide(ClusterView(small_fabric, jobs), JobArrived("loud")).levels == {"loud": 0}


@pytest.mark.parametrize(("compression", "expected"), [("first", [0, 1, 2, 2, 2, 2]), ("even", [0, 0, 1, 1, 2, 2])])
def test_ranks_become_levels_as_the_option_says(
    small_fabric: Fabric, make_ring: RingMaker, compression: str, expected: list[int]
) -> None:
    jobs = {f"j{i}": make_ring(f"j{i}", small_fabric, [0, 2], first_port=20000 + 100 * i) for i in range(6)}
    decision = TacclStar(compression=compression).decide(ClusterView(small_fabric, jobs, 3), JobArrived("j5"))
    assert decision.levels == {f"j{i}": level for i, level in enumerate(expected)}


def test_paths_are_valid_and_visit_no_node_twice(any_fabric: Fabric, make_mix: MixMaker) -> None:
    jobs = make_mix(any_fabric)
    for flow in (flow for job in jobs for flow in job.flows):
        path = taccl_star_paths(any_fabric, jobs)[flow.id]
        nodes = [any_fabric.links[path[0]].source, *(any_fabric.links[link].target for link in path)]
        assert (nodes[0], nodes[-1]) == (flow.source, flow.target)
        assert all(any_fabric.links[link].source == node for link, node in zip(path, nodes, strict=False))
        assert len(set(nodes)) == len(nodes)


def test_the_switches_can_hold_every_decision(clos96_fabric: Fabric, make_mix: MixMaker) -> None:
    view = ClusterView(clos96_fabric, {job.name: job for job in make_mix(clos96_fabric)})
    decision = TacclStar().decide(view, JobArrived("job1"))
    plans = plans_of(RuleBuilder(clos96_fabric), clos96_fabric, view.flows, decision, view.level_count)
    assert plans.keys() == {flow.id for flow in view.flows}


def test_jobs_that_are_as_far_may_share_a_level() -> None:
    far = {"early": 4.0, "near": 2.0, "late": 4.0, "silent": 0.0, "middle": 3.0}
    assert by_distance(far, 8) == {"early": 0, "late": 0, "middle": 1, "near": 2}
    assert by_distance(far, 2) == {"early": 0, "late": 0, "middle": 1, "near": 1}
    assert first_own(far, 8) == {"early": 0, "late": 1, "middle": 2, "near": 3}
    assert by_distance({"silent": 0.0}, 2) == {}


def test_with_levels_by_distance_the_arrival_of_jobs_does_not_matter(clos96_fabric: Fabric, make_mix: MixMaker) -> None:
    jobs = {job.name: job for job in make_mix(clos96_fabric)}
    taccl_star = TacclStar(compression="distance")
    decided = taccl_star.decide(ClusterView(clos96_fabric, jobs), JobArrived("job0")).levels
    later = dict(reversed(jobs.items()))
    assert (
        TacclStar(compression="distance").decide(ClusterView(clos96_fabric, later), JobArrived("job0")).levels
        == decided
    )
    assert len(set(decided.values())) < len(decided)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"distance": "miles"}, "option 'distance' of taccl-star must be hops or cost, not 'miles'"),
        ({"compression": "best"}, "option 'compression' of taccl-star must be first, even or distance, not 'best'"),
    ],
)
def test_wrong_options_are_refused_in_one_line(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        TacclStar(**options)


@pytest.mark.parametrize("distance", ["hops", "cost"])
def test_from_event_to_event_paths_and_levels_are_those_of_placing_all_jobs_again(
    any_fabric: Fabric, make_ring: RingMaker, distance: Distance
) -> None:
    draw, count = Random(7), len(any_fabric.hosts)
    jobs = [
        make_ring(f"job{number}", any_fabric, draw.sample(range(count), min(count, 3)), size=draw.uniform(1e8, 1e9))
        for number in range(6)
    ]
    kept, running = TacclStar(distance=distance), dict[str, Job]()
    for job in draw.choices(jobs, k=20):
        if running.pop(job.name, None) is None:
            running[job.name] = job
        view, in_order = ClusterView(any_fabric, dict(running)), tuple(running.values())
        decided, paths = kept.decide(view, JobArrived(job.name)), flow_by_flow(any_fabric, in_order)
        assert decided.paths == paths
        order = taccl_star_order(any_fabric, in_order, paths, distance)
        assert decided.levels == first_levels_own(order, view.level_count)


def test_a_failed_link_places_all_jobs_again(clos96_fabric: Fabric, make_mix: MixMaker) -> None:
    jobs, kept = {job.name: job for job in make_mix(clos96_fabric)}, TacclStar()
    kept.decide(ClusterView(clos96_fabric, jobs), JobArrived("job0"))
    cut = clos96_fabric.without(["tor0->agg0", "agg0->tor0"])
    decided = kept.decide(ClusterView(cut, jobs), JobArrived("job0"))
    assert decided.paths == taccl_star_paths(cut, tuple(jobs.values())) == flow_by_flow(cut, tuple(jobs.values()))
