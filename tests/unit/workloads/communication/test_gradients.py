"""Options of the gradient exchange: what they save in bytes and idle time."""

from __future__ import annotations

import pytest

from topologies.clos import clos96
from workloads.analysis import isolated
from workloads.build import JobError, JobSpec, build_jobs
from workloads.communication.gradients import Gradients
from workloads.job import Job

FABRIC = clos96()
HOSTS = tuple(f"h{host}g{gpu}" for host in (0, 2) for gpu in range(8))


def job(model: str = "crux-bert", **options: object) -> Job:
    gradients = Gradients(**options)  # type: ignore[arg-type]
    spec = JobSpec("one", model, placement=HOSTS, iterations=100, overlap=0.0, gradients=gradients)
    return build_jobs([spec], FABRIC)[0]


def sent(made: Job) -> float:
    return sum(flow.bytes for flow in made.flows)


def test_fewer_bits_and_fewer_elements_send_so_much_less_in_the_same_compute() -> None:
    plain = job()
    assert sent(job(bits=8)) == pytest.approx(sent(plain) / 2)
    assert sent(job(compression=0.01)) == pytest.approx(sent(plain) / 100)
    assert sent(job(bits=4, compression=0.1)) == pytest.approx(sent(plain) / 40)
    assert job(bits=8).compute_s == plain.compute_s


def test_an_exchange_every_fourth_iteration_makes_four_of_them_one_of_the_job() -> None:
    plain, rare = job(), job(every=4)
    assert rare.compute_s == pytest.approx(4 * plain.compute_s)
    assert rare.flops == pytest.approx(4 * plain.flops)
    assert (rare.iterations, sent(rare)) == (25, pytest.approx(sent(plain)))
    alone, before = isolated(rare, FABRIC), isolated(plain, FABRIC)
    assert alone.exposed_s == pytest.approx(before.exposed_s)  # once in four iterations
    assert alone.utilization > before.utilization


def test_all_to_alls_happen_in_every_iteration_whatever_the_gradients_do() -> None:
    plain, rare = job("moe"), job("moe", every=3, bits=8)
    count = {
        name: sum(phase.collective == "alltoall" for phase in made.phases)
        for name, made in (("plain", plain), ("rare", rare))
    }
    assert count["rare"] == 3 * count["plain"] > 0
    assert [phase.collective for phase in rare.phases if phase.transfers].count("hierarchical") == 1


def test_more_buckets_hide_more_of_the_exchange_up_to_the_backward_pass() -> None:
    one, five, many = (isolated(job(buckets=count), FABRIC) for count in (1, 5, 1000))
    assert one.exposed_s == pytest.approx(one.communication_s)
    assert five.exposed_s == pytest.approx(max(0.0, five.communication_s - 2 / 3 * 0.8 * five.compute_s))
    assert many.exposed_s == pytest.approx(max(0.0, many.communication_s - 2 / 3 * many.compute_s), abs=1e-3)


def test_partitions_hide_what_fits_beside_all_compute() -> None:
    parts = isolated(job(partitions=10), FABRIC)
    assert parts.exposed_s == pytest.approx(max(0.0, parts.communication_s - 0.9 * parts.compute_s))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"bits": 0}, "gradients.bits must lie above 0"),
        ({"compression": 2.0}, "gradients.compression must lie above 0"),
        ({"every": 0}, "gradients.every must be at least 1, not 0"),
        ({"buckets": 2, "partitions": 3}, "expected one"),
    ],
)
def test_what_cannot_be_is_named(options: dict[str, object], said: str) -> None:
    with pytest.raises(JobError, match=said):
        job(**options)
