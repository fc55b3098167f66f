"""Runs whose packets are simulated: near what fluids and analysis say where they should be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import window_shares
from testbed.api import plan, prepare, run_scenario
from testbed.engines.flow.networks.packet_network import PacketNetwork
from testbed.errors import BadInputError
from testbed.experiment.experiment import UNSCALED
from topologies.mininet_adapter import hosts

SCALE = "scale={bandwidth: 4000, time: 1, mtu: 9000}"


def run_of(scenario: str, scheduler: str, engine: str, folder: Path, *more: str) -> dict[str, Any]:
    overrides = [SCALE, "checks=[]", *more]
    result = run_scenario(scenario, engine=engine, schedulers=[scheduler], overrides=overrides, out=folder)
    (found,) = result.summary["runs"]
    return dict(found)


def test_as_many_packets_wait_in_a_nic_as_the_emulated_hosts_let_wait() -> None:
    (experiment,) = prepare("hello.yaml", schedulers=["crux"]).experiments
    network = PacketNetwork({"a": 8.0}, experiment)
    counted = 9000 + hosts.SOCKET_BUFFER_BYTES
    # A connection waits while more than this is in its NIC: one packet is not, that many are.
    assert (network._state.rules.at_nic - 1) * counted < hosts.small_queue_bytes(9000)
    assert hosts.small_queue_bytes(9000) < network._state.rules.at_nic * counted


def test_jobs_at_their_own_levels_are_as_fast_as_fluids(tmp_path: Path) -> None:
    packets, fluid = (run_of("hello.yaml", "crux", engine, tmp_path) for engine in ("simulation", "flow"))
    assert packets["gpu_utilization"] == pytest.approx(fluid["gpu_utilization"], abs=0.01)
    for mine, other in zip(packets["jobs"], fluid["jobs"], strict=True):
        assert mine["iteration_s"]["mean"] == pytest.approx(other["iteration_s"]["mean"], rel=0.02)


@pytest.mark.parametrize(
    "scheduler", ["cassini", "crux", "mltcp", "pfabric", "pias", "sglb", "sincronia", "varys", "lina", "ideal"]
)
def test_every_kind_of_decision_reaches_the_packets(scheduler: str, tmp_path: Path) -> None:
    found = run_of(
        "hello.yaml", scheduler, "simulation", tmp_path, "measure={iterations: 4, warmup: 1, time_limit: 60s}"
    )
    assert 0.5 < found["gpu_utilization"] <= 1.0


@pytest.mark.parametrize(("channels", "gigabytes", "measured"), [(1, (20.0, 29.0), 0.445), (8, (9.0, 7.3), 0.415)])
def test_flows_that_share_two_queues_get_what_real_packets_got(
    channels: int, gigabytes: tuple[float, float], measured: float
) -> None:
    assert window_shares.simulated(*gigabytes, channels) == pytest.approx(measured, abs=0.01)


def test_a_run_is_the_same_again(tmp_path: Path) -> None:
    first, second = (run_of("hello.yaml", "ecmp", "simulation", tmp_path / name) for name in "ab")
    assert first == second


def test_jobs_of_a_manager_come_and_go(tmp_path: Path) -> None:
    found = run_of("arrivals.yaml", "ecmp", "simulation", tmp_path)
    assert found["gpu_utilization"] > 0.1


def test_only_packets_need_a_scale() -> None:
    for sharing in ("max-min", "proportional"):
        (experiment,) = prepare(
            "hello.yaml", engine="flow", schedulers=["crux"], overrides=[f"sharing={sharing}"]
        ).experiments
        assert experiment.scale == UNSCALED
    (packets,) = prepare("hello.yaml", engine="simulation", schedulers=["crux"]).experiments
    (emulated,) = prepare("hello.yaml", schedulers=["crux"]).experiments
    assert packets.scale == emulated.scale


def test_a_plan_says_which_packets_would_be_simulated() -> None:
    document = plan("hello.yaml", engine="simulation", overrides=[SCALE])
    assert document["scale"]["bandwidth"] == 4000


def test_a_plan_counts_the_packet_hops_of_a_run_and_estimates_their_time() -> None:
    """Two jobs of hello: each iteration's packets over the links of their paths; coarser packets are fewer."""
    fine, coarse = (
        plan("hello.yaml", engine="simulation", schedulers=["ecmp"], overrides=[f"scale={{bandwidth: {bandwidth}}}"])
        for bandwidth in (2000, 4000)
    )
    (entry,), (fewer,) = fine["schedulers"], coarse["schedulers"]
    assert entry["packet_hops"] == pytest.approx(2 * fewer["packet_hops"], rel=0.01)
    assert fine["estimated_s"] == entry["estimated_s"] > 0.0
    assert plan("hello.yaml", engine="flow")["estimated_s"] is None


def test_what_was_a_way_to_share_links_is_an_engine_of_its_own() -> None:
    with pytest.raises(BadInputError, match=r"'packets' is an engine of its own now, .* --engine simulation"):
        prepare("hello.yaml", engine="flow", overrides=["sharing=packets"])
