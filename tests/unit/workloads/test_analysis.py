"""A job alone: t_j, exposed communication and utilisation in closed form, with and without colliding flows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.clos import clos96
from topologies.double_sided import double_sided
from topologies.fabric import Fabric, Path
from workloads.analysis import isolated, self_collision
from workloads.build import JobSpec, build_jobs
from workloads.job import Job

FABRIC = clos96()
RATE = 200e9


def build(**overrides: object) -> Job:
    fields = {"model": "bert", "gpus": 48, "compute_s": 1.0, "communication_bytes": 40e9, "overlap": 0.0, **overrides}
    return build_jobs([JobSpec(name="j", **fields)], FABRIC, "spread")[0]  # type: ignore[arg-type]


def paths_of(job: Job, fabric: Fabric, *choice: int) -> dict[str, Path]:
    """Path number ``choice`` of each flow, repeated as often as needed."""
    found = {}
    for index, flow in enumerate(job.flows):
        candidates = fabric.candidate_paths(flow.source, flow.target)
        found[flow.id] = candidates[choice[index % len(choice)] % len(candidates)]
    return found


def test_serial_communication_is_exposed_at_the_rate_of_the_nic() -> None:
    alone = isolated(build(), FABRIC)
    communication = 2 * 5 / 6 * 40e9 / 4 * 8 / RATE
    assert alone.communication_s == pytest.approx(communication)
    assert alone.exposed_s == pytest.approx(communication)
    assert alone.iteration_s == pytest.approx(1.0 + communication)
    assert alone.utilization == pytest.approx(1 / (1 + communication))


def test_bytes_by_link_are_on_the_host_links_of_both_ends() -> None:
    alone = isolated(build(), FABRIC)
    assert len(alone.bytes_by_link) == 48
    assert {FABRIC.links[link].kind for link in alone.bytes_by_link} == {"host-tor"}


@given(st.floats(0, 1), st.floats(0, 2e11))
def test_overlap_hides_communication_up_to_its_share_of_the_compute(overlap: float, size: float) -> None:
    alone = isolated(build(overlap=overlap, communication_bytes=size), FABRIC)
    assert alone.exposed_s == pytest.approx(max(0.0, alone.communication_s - overlap), abs=1e-9)
    assert alone.iteration_s == pytest.approx(alone.compute_s + alone.exposed_s)


def test_an_all_to_all_takes_what_leaves_the_host_through_its_nics() -> None:
    alone = isolated(build(collective="alltoall", communication_bytes=1e9), FABRIC)
    assert alone.communication_s == pytest.approx(1e9 * 8 * 5 / 6 / 4 * 8 / RATE)


def test_phases_add_up_and_t_j_adds_all_their_bytes() -> None:
    job = build_jobs([JobSpec("moe", "moe", 16, overlap=0.0)], FABRIC, "spread")[0]
    alone = isolated(job, FABRIC)
    assert alone.iteration_s == pytest.approx(job.compute_s + alone.communication_s)


def test_a_job_inside_one_host_communicates_for_no_time() -> None:
    alone = isolated(build(gpus=None, placement=("h0g0", "h0g2")), FABRIC)
    assert (alone.communication_s, alone.exposed_s, alone.utilization) == (0.0, 0.0, 1.0)


def test_the_fill_of_the_pipeline_counts_once_per_phase_that_sends() -> None:
    job = build_jobs([JobSpec("moe", "moe", 16, overlap=0.0)], FABRIC, "spread")[0]
    gained = isolated(job, FABRIC, fill_s=0.01).iteration_s - isolated(job, FABRIC).iteration_s
    assert gained == pytest.approx(5 * 0.01)
    idle = build(communication_bytes=0.0)
    assert isolated(idle, FABRIC, fill_s=0.01).iteration_s == idle.compute_s


def test_flows_on_separate_paths_cost_a_job_nothing() -> None:
    job = build()
    apart = paths_of(job, FABRIC, *(rail for rail in range(4) for _ in range(6)))
    assert self_collision(job, FABRIC, apart) == pytest.approx(1.0)


@pytest.mark.parametrize(("choice", "sharing"), [((0,), 4), ((0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1), 2)])
def test_flows_that_share_a_link_slow_their_job_by_their_number(choice: tuple[int, ...], sharing: int) -> None:
    job = build()
    alone, shared = isolated(job, FABRIC), isolated(job, FABRIC, paths_of(job, FABRIC, *choice))
    assert shared.communication_s == pytest.approx(sharing * alone.communication_s)
    slowdown = self_collision(job, FABRIC, paths_of(job, FABRIC, *choice))
    assert slowdown == pytest.approx((1 + sharing * alone.communication_s) / (1 + alone.communication_s))


@given(st.lists(st.integers(0, 7), min_size=24, max_size=24))
def test_paths_never_make_a_job_faster(choice: list[int]) -> None:
    job = build()
    assert self_collision(job, FABRIC, paths_of(job, FABRIC, *choice)) >= 1 - 1e-12


def test_a_stripe_over_two_ports_takes_as_long_as_one_bonded_port() -> None:
    fabric = double_sided(hosts=12, tors=4, aggregations=2, cores=2)
    spec = JobSpec("j", "bert", 48, communication_bytes=40e9)
    striped, bonded = (isolated(build_jobs([spec], one, "first-free")[0], one) for one in (fabric, FABRIC))
    assert striped.communication_s == pytest.approx(bonded.communication_s)


def test_a_flow_without_a_path_is_an_error() -> None:
    with pytest.raises(KeyError):
        isolated(build(), FABRIC, {})
