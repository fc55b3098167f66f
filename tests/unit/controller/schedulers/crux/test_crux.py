from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.decision import ClusterView, Decision, JobArrived
from controller.schedulers.crux.intensity import links_used, profile
from controller.schedulers.crux.path_selection import least_loaded, select_paths
from controller.schedulers.crux.scheduler import Crux
from controller.schedulers.ecmp import Ecmp
from controller.schedulers.registry import create, names
from controller.service.json_codec import to_json
from topologies.fabric import Fabric
from workloads.job import Job

RingMaker = Callable[..., Job]
MixMaker = Callable[[Fabric], list[Job]]


def decide(scheduler: Crux, fabric: Fabric, jobs: list[Job], levels: int = 8) -> Decision:
    view = ClusterView(fabric, {job.name: job for job in jobs}, levels)
    return scheduler.decide(view, JobArrived(jobs[-1].name))


def test_intensity_is_work_over_the_time_of_the_worst_link(small_fabric: Fabric, make_ring: RingMaker) -> None:
    job = make_ring("a", small_fabric, [0, 2], size=1e9, flops=4e15)
    found = profile(job, small_fabric)
    assert found.communication_s == pytest.approx(1e9 * 8 / 100e9)
    assert found.intensity == pytest.approx(4e15 / 0.08)


def test_flows_that_share_an_assigned_link_add_up(clos96_fabric: Fabric, make_ring: RingMaker) -> None:
    job = make_ring("a", clos96_fabric, [0, 2])
    one_way = {flow.id: clos96_fabric.candidate_paths(flow.source, flow.target)[0] for flow in job.flows}
    apart, together = profile(job, clos96_fabric), profile(job, clos96_fabric, one_way)
    assert together.communication_s == pytest.approx(4 * apart.communication_s)
    assert together.intensity == pytest.approx(apart.intensity / 4)


def test_twice_the_gpus_at_equal_traffic_is_twice_the_intensity(small_fabric: Fabric, make_ring: RingMaker) -> None:
    one, two = (profile(make_ring("a", small_fabric, [0, 2], flops=flops), small_fabric) for flops in (1e15, 2e15))
    assert two.intensity == pytest.approx(2 * one.intensity)


def test_a_job_that_sends_nothing_has_no_intensity(small_fabric: Fabric) -> None:
    quiet = Job("quiet", "test", ("h0g0",), (), (), 1e15, 10)
    found = profile(quiet, small_fabric)
    assert not found.communicates and found.intensity == 0.0


def test_the_least_loaded_path_wins_and_the_first_on_a_tie() -> None:
    candidates = [("in", "a", "out"), ("in", "b", "out"), ("in", "c", "out")]
    assert least_loaded(candidates, {"a": 0.5, "b": 0.1, "c": 0.1}) == ("in", "b", "out")


def test_with_equal_maxima_the_sum_decides() -> None:
    candidates = [("in", "a", "out"), ("in", "b", "out")]
    assert least_loaded(candidates, {"in": 0.9, "a": 0.5, "b": 0.1}) == ("in", "b", "out")


def test_a_job_alone_gets_disjoint_paths(clos96_fabric: Fabric, make_ring: RingMaker) -> None:
    job = make_ring("a", clos96_fabric, [0, 2])
    paths = select_paths(clos96_fabric, [job], {"a": 1.0})
    assert len({path[1] for flow, path in paths.items() if flow.endswith("/0")}) == 4


def test_the_intense_job_chooses_first(small_fabric: Fabric, make_ring: RingMaker) -> None:
    weak = make_ring("weak", small_fabric, [0, 2], flops=1e14)
    strong = make_ring("strong", small_fabric, [1, 3], flops=1e16, first_port=30000)
    decision = decide(Crux(), small_fabric, [weak, strong])
    assert {path[1] for flow, path in decision.paths.items() if flow == "strong/0/0"} == {"tor0->agg0"}
    assert {path[1] for flow, path in decision.paths.items() if flow == "weak/0/0"} == {"tor0->agg1"}


def test_jobs_that_share_no_link_have_no_level(small_fabric: Fabric, make_ring: RingMaker) -> None:
    jobs = [
        make_ring("a", small_fabric, [0, 2]),
        make_ring("b", small_fabric, [1, 3], first_port=30000),
    ]
    decision = decide(Crux(), small_fabric, jobs)
    assert not links_used(jobs[0], small_fabric, decision.paths) & links_used(jobs[1], small_fabric, decision.paths)
    assert decision.levels == {}


def test_of_jobs_that_share_links_the_intense_one_is_served_first(small_fabric: Fabric, make_ring: RingMaker) -> None:
    jobs = [
        make_ring("weak", small_fabric, [0, 2], flops=1e14),
        make_ring("strong", small_fabric, [0, 2], flops=1e16, first_port=30000),
    ]
    assert decide(Crux(), small_fabric, jobs).levels == {"strong": 0, "weak": 1}


def test_a_shared_pcie_link_counts_as_contention(clos96_fabric: Fabric, make_ring: RingMaker) -> None:
    job = make_ring("a", clos96_fabric, [0, 2])
    used = links_used(job, clos96_fabric, Ecmp().decide(ClusterView(clos96_fabric, {"a": job}), JobArrived("a")).paths)
    assert {"h0s0->h0n0", "h2n0->h2s0"} <= used
    assert used <= clos96_fabric.links.keys()


def test_without_paths_crux_keeps_the_ecmp_ones(clos96_fabric: Fabric, make_mix: MixMaker) -> None:
    jobs = make_mix(clos96_fabric)
    view = ClusterView(clos96_fabric, {job.name: job for job in jobs})
    assert decide(Crux(paths=False), clos96_fabric, jobs).paths == Ecmp().decide(view, JobArrived("job0")).paths


def test_without_priorities_there_are_no_levels(small_fabric: Fabric, make_ring: RingMaker) -> None:
    jobs = [make_ring("a", small_fabric, [0, 2]), make_ring("b", small_fabric, [0, 2], first_port=30000)]
    assert decide(Crux(priorities=False), small_fabric, jobs).levels == {}


def test_without_compression_the_lowest_level_collects_the_rest(small_fabric: Fabric, make_ring: RingMaker) -> None:
    jobs = [
        make_ring(f"j{index}", small_fabric, [0, 2], flops=1e16 / (index + 1), first_port=20000 + 100 * index)
        for index in range(4)
    ]
    assert decide(Crux(compression=False), small_fabric, jobs, levels=3).levels == {
        "j0": 0,
        "j1": 1,
        "j2": 2,
        "j3": 2,
    }


def test_crux_spreads_better_than_ecmp(clos96_fabric: Fabric, make_mix: MixMaker) -> None:
    jobs = make_mix(clos96_fabric)
    view = ClusterView(clos96_fabric, {job.name: job for job in jobs})

    def worst(decision: Decision) -> float:
        return sum(profile(job, clos96_fabric, decision.paths).communication_s for job in jobs)

    assert worst(Crux().decide(view, JobArrived("job0"))) < worst(Ecmp().decide(view, JobArrived("job0")))


def test_schedulers_are_found_by_name() -> None:
    assert {"crux", "ecmp", "ecmp-switch"} <= set(names())
    assert [create(name).name for name in ("crux", "ecmp", "ecmp-switch")] == ["crux", "ecmp", "ecmp-switch"]


def test_the_seed_goes_to_a_scheduler_that_takes_one(small_fabric: Fabric, make_ring: RingMaker) -> None:
    view = ClusterView(small_fabric, {"a": make_ring("a", small_fabric, [0, 1, 2, 3])}, seed=1)
    decisions = [create("ecmp", {}, seed).decide(view, JobArrived("a")).paths for seed in range(8)]
    assert any(paths != decisions[0] for paths in decisions)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("no-such", {}, "unknown scheduler 'no-such', expected one of "),
        ("crux", {"path": True}, "unknown option 'path' of scheduler crux, did you mean 'paths'?"),
        ("crux", {"paths": "no"}, "option 'paths' of crux must be true or false, not 'no'"),
        ("ecmp-switch", {"seed": 1}, "unknown option 'seed' of scheduler ecmp-switch, expected: none"),
    ],
)
def test_a_wrong_name_or_option_is_one_clear_line(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=r".+") as caught:
        create(name, options)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


DECIDE = """
import sys
sys.path.insert(0, sys.argv[1])
from conftest import mix
from controller.decision import ClusterView, JobArrived
from controller.schedulers.registry import create
from controller.service.json_codec import to_json
from topologies.clos import clos96
fabric = clos96()
view = ClusterView(fabric, {job.name: job for job in mix(fabric)}, level_count=8, seed=3)
for name in ("crux", "ecmp", "ecmp-switch"):
    print(to_json(create(name, {}, 3).decide(view, JobArrived("job0"))))
"""


def test_decisions_are_the_same_byte_for_byte_in_every_process() -> None:
    here = Path(__file__).parents[2]
    outputs = [
        subprocess.run(
            [sys.executable, "-c", DECIDE, str(here)],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(here.parents[2])},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b"\n") == 3


def test_the_order_in_a_decisions_json_is_canonical() -> None:
    one = to_json(Decision(levels={"b": 1, "a": 0}))
    assert one == to_json(Decision(levels={"a": 0, "b": 1}))
    assert '"levels":{"a":0,"b":1}' in one
