"""What a run will send, before it is run: every byte counts where it leaves a host and at each switch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from testbed.api import prepare
from testbed.engines.flow.demand import demands_of, synthetic
from testbed.experiment.demand import BIN_S, BURST, Demand, most_of, peak_demand
from testbed.experiment.scheduler_choice import SchedulerChoice

HELLO = prepare("hello").experiments
ONE = prepare(
    "hello", schedulers=["crux"], overrides=["checks=[]", "jobs=[{name: alone, model: bert, placement: [h0, h1]}]"]
)


def test_every_scheduler_has_a_demand_and_ideal_one_for_each_job() -> None:
    assert [demand.scheduler for demand in demands_of(HELLO)] == ["ecmp", "crux"]
    ideal = replace(HELLO[0], scheduler=SchedulerChoice("ideal"))
    assert [demand.scheduler for demand in demands_of([ideal])] == ["ideal"] * len(HELLO[0].jobs)


def test_bytes_of_whole_iterations_leave_the_hosts_and_pass_three_switches() -> None:
    (experiment,) = ONE.experiments
    (demand,) = demands_of([experiment])
    (job,) = experiment.jobs
    iterations = 8 * sum(flow.bytes for flow in job.flows)
    wanted = experiment.measure.warmup + experiment.measure.iterations
    assert sum(demand.sent) / iterations == pytest.approx(min(10, wanted), abs=1)
    hops = {len(experiment.fabric.candidate_paths(flow.source, flow.target)[0]) - 1 for flow in job.flows}
    assert hops == {3}
    assert sum(demand.forwarded) == pytest.approx(3 * sum(demand.sent), rel=1e-6)


def test_no_run_is_busier_than_all_ports_sending_at_once() -> None:
    peak = peak_demand(HELLO[0].fabric, HELLO[0].jobs)
    for demand in demands_of(HELLO):
        assert 0 < demand.busiest("nftables", 1.0) <= 1.001 * peak.busiest("nftables", 1.0)


def test_hosts_count_as_their_datapath_costs() -> None:
    demand = Demand("ecmp", (4.0,), (8.0,))
    assert demand.busiest("userspace", 1.0) == pytest.approx((0.5 * 4 + 8) / BIN_S)
    assert demand.busiest("nftables", 1.0) == pytest.approx((10 * 4 + 8) / BIN_S)


def test_the_busiest_second_counts_and_bins_that_ask_for_more_than_a_burst_may() -> None:
    even, burst = (10.0,) * 20, (0.0,) * 9 + (50.0, 50.0) + (0.0,) * 9
    assert Demand("even", even, even).busiest("userspace", 1.0) == pytest.approx(15.0 / BIN_S)
    second, bin_s = 0.2 * 75.0 / BIN_S, 75.0 / BIN_S
    assert second < bin_s / BURST
    assert Demand("burst", burst, burst).busiest("userspace", 1.0) == pytest.approx(bin_s / BURST)


def test_dilated_a_second_of_the_machine_is_less_of_the_run() -> None:
    burst = (0.0,) * 9 + (50.0, 50.0) + (0.0,) * 9
    demand = Demand("burst", burst, burst)
    assert demand.busiest("userspace", 4.0) == pytest.approx(2 / 2 * 75.0 / BIN_S)
    asked = [demand.busiest("userspace", dilation) for dilation in (1.0, 2.0, 3.0, 12.0)]
    assert asked == sorted(asked)


def test_the_demand_that_asks_for_most_decides() -> None:
    few, many = Demand("ecmp", (4.0,), (8.0,)), Demand("crux", (5.0,), (10.0,))
    assert most_of([few, many], "userspace", 1.0) == many.busiest("userspace", 1.0)
    assert most_of([], "userspace", 1.0) == Demand("none", (), ()).busiest("userspace", 1.0) == 0.0


def test_code_of_other_packages_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    foreign = replace(HELLO[0], scheduler=SchedulerChoice("somebodys-own", label="theirs"))
    (demand,) = demands_of([foreign])
    assert demand.scheduler == "theirs"
    assert demand.sent == demands_of(HELLO[:1])[0].sent


def test_jobs_that_compute_only_send_nothing() -> None:
    experiment = replace(HELLO[0], jobs=tuple(replace(job, phases=(), flows=()) for job in HELLO[0].jobs))
    assert synthetic(experiment.jobs[0]) is experiment.jobs[0]
    assert peak_demand(experiment.fabric, experiment.jobs).busiest("nftables", 1.0) == 0.0
