"""The scenarios of the paper's figures: alone, their jobs are where the Ideal bars are; nothing about contention."""

from __future__ import annotations

import pytest

from testbed.api import Prepared, prepare
from testbed.reproduce.crux.inputs.figure_runs import computed, mean_utilization
from workloads.analysis import isolated
from workloads.models.figure_calibration import (
    A_PRIORI,
    HIDDEN_SHARE,
    IDEAL_BARS,
    OWN_COLLISION,
    IdealBar,
    calibrations,
    isolated_utilizations,
    solve,
)

SCENARIOS = (*IDEAL_BARS, "crux-fig7")
PREPARED = {name: prepare(name) for name in SCENARIOS}


def kind(name: str) -> str:
    return name.partition("-")[0]


def owners(prepared: Prepared, of: str) -> dict[str, set[str]]:
    """NIC -> the jobs it serves, or ToR -> the jobs under it."""
    fabric, found = prepared.fabric, dict[str, set[str]]()
    for job in prepared.jobs:
        for gpu in job.gpus:
            nic = fabric.nic_of_gpu[gpu]
            key = nic if of == "nic" else fabric.uplink(fabric.nics[nic].ports[0]).target
            found.setdefault(key, set()).add(job.name)
    return found


@pytest.mark.parametrize("name", IDEAL_BARS)
def test_the_isolated_utilisations_give_the_ideal_bar(name: str) -> None:
    bar, alone = IDEAL_BARS[name], isolated_utilizations()[name]
    mean = sum(gpus * alone[kind] for kind, gpus in bar.gpus.items()) / sum(bar.gpus.values())
    assert mean == pytest.approx(bar.utilization, abs=0.005)


@pytest.mark.parametrize("name", IDEAL_BARS)
def test_a_scenario_has_the_gpus_of_its_bar(name: str) -> None:
    gpus: dict[str, int] = {}
    for job in PREPARED[name].jobs:
        gpus[kind(job.name)] = gpus.get(kind(job.name), 0) + len(job.gpus)
    assert gpus == dict(IDEAL_BARS[name].gpus)


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_bytes_in_the_file_give_every_job_alone_its_calibrated_utilisation(name: str) -> None:
    targets, chosen = isolated_utilizations()[name], calibrations(name)
    for job in PREPARED[name].jobs:
        alone = isolated(job, PREPARED[name].fabric)
        assert alone.utilization == pytest.approx(targets[kind(job.name)], abs=0.0005)
        assert alone.communication_s == pytest.approx(chosen[kind(job.name)].communication_s, rel=0.0005)


@pytest.mark.parametrize("name", IDEAL_BARS)
def test_alone_the_jobs_run_at_the_ideal_bar_with_their_jitter(name: str) -> None:
    found = mean_utilization(computed(name, "ideal", (), 1))
    assert found == pytest.approx(IDEAL_BARS[name].utilization, abs=0.006)


@pytest.mark.parametrize("name", ["crux-fig19-2", "crux-fig19-3", "crux-fig19-4", "crux-fig20", "crux-fig7"])
def test_where_the_network_is_contended_no_nic_serves_two_jobs(name: str) -> None:
    assert all(len(jobs) == 1 for jobs in owners(PREPARED[name], "nic").values())
    shared = [jobs for jobs in owners(PREPARED[name], "tor").values() if len(jobs) > 1]
    assert shared and all("gpt" in jobs for jobs in shared)


@pytest.mark.parametrize("name", [name for name in IDEAL_BARS if name.startswith(("crux-fig21", "crux-fig22"))])
def test_where_pcie_is_contended_every_other_job_shares_each_of_its_nics_with_bert(name: str) -> None:
    for jobs in owners(PREPARED[name], "nic").values():
        assert "bert" in jobs and len(jobs) <= 2
    users = set().union(*(jobs for jobs in owners(PREPARED[name], "nic").values() if len(jobs) == 2))
    assert users == {job.name for job in PREPARED[name].jobs}


def test_gpt_alone_is_hidden_as_long_as_no_more_of_its_own_connections_collide_than_usual() -> None:
    gpt = calibrations("crux-fig19-2", A_PRIORI)["gpt"]
    assert OWN_COLLISION * gpt.communication_s == pytest.approx(gpt.overlap * gpt.compute_s)
    assert pytest.approx(2 / 9) == HIDDEN_SHARE


def test_bars_that_leave_two_jobs_open_determine_nothing() -> None:
    with pytest.raises(ValueError, match="do not determine the utilisations of a, b"):
        solve([IdealBar(0.8, {"a": 8, "b": 8})], {})


def test_what_is_given_is_kept_and_the_rest_solved() -> None:
    assert solve([IdealBar(0.75, {"a": 8, "b": 8})], {"a": 1.0}) == pytest.approx({"a": 1.0, "b": 0.5})
