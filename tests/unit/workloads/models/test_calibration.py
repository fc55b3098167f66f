"""Each calibrated job, alone, is where the paper's Ideal bars put it; nothing is set about contention."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.clos import clos96
from workloads.analysis import isolated
from workloads.build import JobSpec, build_jobs
from workloads.job import Job
from workloads.models.calibration import CALIBRATED, allreduce_bytes, exposed_communication, sensitivity


def gpus(hosts: str, first: int, last: int) -> tuple[str, ...]:
    return tuple(f"{host}g{gpu}" for host in hosts.split() for gpu in range(first, last + 1))


PLACEMENT = {
    "crux-gpt": gpus("h0 h2 h4 h6 h8 h10", 0, 7),
    "crux-bert": gpus("h1 h3 h5 h7", 0, 3),
    "crux-resnet": gpus("h9 h11", 0, 3),
}


def job(model: str, bonded: bool = True) -> Job:
    return build_jobs([JobSpec(model, model, placement=PLACEMENT[model])], clos96(bonded))[0]


@pytest.mark.parametrize("bonded", [True, False])
@pytest.mark.parametrize(
    ("model", "low", "high"),
    [
        ("crux-gpt", 0.99, 1.0),
        ("crux-bert", 0.76, 0.84),
        ("crux-resnet", 0.79, 0.81),
    ],
)
def test_alone_a_job_has_the_utilisation_of_the_ideal_bars(model: str, low: float, high: float, bonded: bool) -> None:
    assert low <= isolated(job(model, bonded), clos96(bonded)).utilization <= high + 1e-9


def test_gpt_computes_a_second_and_a_half_and_hides_all_communication_with_slack() -> None:
    alone = isolated(job("crux-gpt"), clos96())
    assert alone.iteration_s == pytest.approx(1.5)
    assert alone.communication_s == pytest.approx(0.5 * 1.5)
    assert isolated(job("crux-gpt"), clos96(), fill_s=0.1).exposed_s == pytest.approx(0)


@pytest.mark.parametrize("model", PLACEMENT)
def test_messages_are_long_enough_to_be_bound_by_bandwidth(model: str) -> None:
    assert isolated(job(model), clos96()).communication_s >= 0.1


def test_intensity_falls_from_gpt_over_bert_to_resnet() -> None:
    jobs = [job(model) for model in ("crux-gpt", "crux-bert", "crux-resnet")]
    intensities = [one.flops / isolated(one, clos96()).communication_s for one in jobs]
    assert intensities == sorted(intensities, reverse=True)
    assert intensities[0] > 1.5 * intensities[1] > 2 * intensities[2]


def test_the_paper_mix_alone_uses_nine_tenths_of_the_gpus() -> None:
    share = {"crux-gpt": 48, "crux-bert": 32, "crux-resnet": 16}
    total = sum(isolated(job(model), clos96()).utilization * count for model, count in share.items()) / 96
    assert total == pytest.approx(0.90, abs=0.005)


@given(st.floats(0.05, 5), st.floats(0, 1), st.floats(0.05, 0.99))
def test_the_communication_found_gives_the_utilisation_asked_for(
    compute: float, overlap: float, utilization: float
) -> None:
    communication = exposed_communication(compute, overlap, utilization)
    assert compute / ((1 - overlap) * compute + communication) == pytest.approx(utilization)


@given(st.floats(0.01, 5), st.integers(2, 32), st.integers(1, 8))
def test_the_bytes_found_take_the_time_asked_for(communication: float, hosts: int, nics: int) -> None:
    size = allreduce_bytes(communication, hosts, nics, 200e9)
    assert 2 * (hosts - 1) / hosts * size / nics * 8 / 200e9 == pytest.approx(communication)


def test_a_utilisation_of_one_does_not_fix_the_communication() -> None:
    with pytest.raises(ValueError, match="does not fix"):
        exposed_communication(1.0, 0.5, 1.0)


def test_an_allreduce_inside_one_host_cannot_be_calibrated() -> None:
    with pytest.raises(ValueError, match="inside one host"):
        allreduce_bytes(0.5, 1, 4, 200e9)


def test_a_hidden_share_must_fit_into_the_overlap() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        _ = replace(CALIBRATED["crux-gpt"], hidden_share=0.7).communication_s


def test_sensitivity_shows_what_the_hidden_share_decides() -> None:
    rows = {row.hidden_share: row for row in sensitivity(2 / 3)}
    chosen = rows[0.50]
    assert chosen.alone == 1.0
    assert chosen.slowed_2x == pytest.approx(3 / 4)
    assert chosen.slowed_3x == pytest.approx(6 / 11)
    assert all(row.alone == 1.0 for row in rows.values())
    by_share = [row.slowed_2x for row in rows.values()]
    assert by_share == sorted(by_share, reverse=True)
