"""Two jobs behind one PCIe switch that is slower than the ports of its NIC: they meet inside the host."""

from __future__ import annotations

import pytest
from emulation_runs import Finished, run_text

pytestmark = pytest.mark.emulation

RATE = 100e9
SIZE = 3e9
COMPUTE_S = 0.05
SCENARIO = """
fabric: {kind: clos, hosts: 2, gpus_per_host: 2, nics_per_host: 1, ports_per_nic: 2, tors: 2, aggregations: 2,
         port_rate: 100Gbps, fabric_rate: 200Gbps, pcie_rate: 100Gbps, pcie_queues: emulated}
jobs:
  - {name: one, model: bert, placement: [h0g0, h1g0], compute: 0.05s, communication: 3GB, overlap: 0}
  - {name: two, model: bert, placement: [h0g1, h1g1], compute: 0.05s, communication: 3GB, overlap: 0}
schedulers:
  - ecmp
  - {name: fixed, levels: {one: 0, two: 1}}
  - {name: crux, pcie: semaphore}
measure: {iterations: 6, warmup: 2, time_limit: 20s}
scale: {bandwidth: 8000, time: 1}
"""
SCALE = 8000
ALONE_S = COMPUTE_S + 8 * SIZE / RATE
PACKET_S = 8 * 9000 * SCALE / RATE
FILL_S = 4 * PACKET_S
"""A message's last full packet on its way after PCIe: a cable, two of twice the rate, a cable, and PCIe again."""
BEGUN_S = 2 * PACKET_S
"""Nothing is preempted: a packet of the lower level that has begun ends first, at PCIe of either host."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return run_text(SCENARIO, tmp_path_factory.mktemp("inside"))


def iteration_s(finished: Finished, scheduler: str, job: str) -> float:
    found: float = finished.job(scheduler, job)["iteration_s"]["mean"]
    return found


def test_at_one_level_each_job_gets_half_of_pcie_and_none_is_lost(finished: Finished) -> None:
    """With hardly any compute PCIe is always busy: two iterations take what their bytes take, to within a pause."""
    finished.skip_if_disturbed()
    one, two = (iteration_s(finished, "ecmp", job) for job in ("one", "two"))
    assert one == pytest.approx(two, rel=0.02)
    busy = 2 * 8 * SIZE / RATE
    assert 0.98 * busy <= one <= 1.02 * (busy + COMPUTE_S)
    assert finished.run("ecmp")["fidelity"]["unintended_drops"] == 0


@pytest.mark.parametrize("scheduler", ["fixed", "crux"])
def test_the_higher_level_gets_all_of_pcie(finished: Finished, scheduler: str) -> None:
    finished.skip_if_disturbed()
    assert ALONE_S <= iteration_s(finished, scheduler, "one") <= 1.02 * (ALONE_S + FILL_S + BEGUN_S)
    assert iteration_s(finished, scheduler, "two") > 1.8 * ALONE_S


def test_queues_of_pcie_are_measured_like_others_and_reach_their_rate(finished: Finished) -> None:
    finished.skip_if_disturbed()
    links = {row["link"] for row in finished.rows("ecmp", "links.csv")}
    assert {"h0s0->h0n0", "h0n0->h0s0", "h1s0->h1n0", "h1n0->h1s0"} <= links
    busy_s, reached, _ = finished.environment("ecmp")["link_rates"]["h0s0->h0n0"]
    assert busy_s > 1.0
    assert reached == pytest.approx(1.0, abs=0.02)


def test_a_semaphore_lets_a_lower_job_wait_but_not_for_ever(finished: Finished) -> None:
    last = finished.decisions("crux")[-1]
    assert last["exclusive"] == ["h0s0->h0n0", "h1s0->h1n0"]
    finished.skip_if_disturbed()
    assert finished.job("crux", "two")["iterations"] >= 3
