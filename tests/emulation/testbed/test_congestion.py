"""Congestion control in the kernel: marks at the threshold, fair shares, drops where asked, and no trace afterwards."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from emulation_runs import Finished, run_text, run_to_end

from topologies.mininet_adapter.bpf.congestion_controls import AVAILABLE
from topologies.mininet_adapter.bpf.link_queues import OBJECTS

pytestmark = pytest.mark.emulation

SCENARIO = """
fabric: {kind: clos, hosts: 2, gpus_per_host: 2, nics_per_host: 2, tors: 2, aggregations: 1,
         port_rate: 100Gbps, fabric_rate: 100Gbps}
jobs:
- {name: one, placement: ["h0:0", "h1:0"], model: bert, compute: 0.01s, overlap: 0, communication: 12GB}
- {name: two, placement: ["h0:1", "h1:1"], model: bert, compute: 0.01s, overlap: 0, communication: 12GB}
channels: 1
schedulers: [ecmp]
network: NETWORK
measure: {iterations: 4, warmup: 1, time_limit: 30s}
scale: {bandwidth: 4000, time: 1}
"""


def run(tmp_path: Path, network: str) -> Finished:
    before = AVAILABLE.read_text()
    done = run_text(SCENARIO.replace("NETWORK", network), tmp_path)
    assert AVAILABLE.read_text() == before, "what was added to the kernel is gone"
    return done


def congestion(done: Finished) -> dict[str, Any]:
    reasons = done.run("ecmp")["fidelity"]["reasons"]
    ours = ("sent again", "path", "class ", "filter", "the queue of", "dropped")
    assert not [reason for reason in reasons if any(word in reason for word in ours)], reasons
    found: dict[str, Any] = done.environment("ecmp")["congestion"]
    return found


def test_switches_mark_above_the_threshold_and_hosts_never_do(tmp_path: Path) -> None:
    done = run(tmp_path, "{transport: dctcp, ecn: {packets: 8}}")
    found = congestion(done)
    entry = done.run("ecmp")
    assert found["marked"] > 0 and (entry["network"]["dropped"], entry["fidelity"]["retransmits"]) == (0, 0)
    assert entry["network"]["longest_queue_bytes"] > 8 * 36e6
    queues = {(link, level): (entered, marked) for link, level, entered, marked, _ in found["queues"]}
    assert not any(marked for (link, _), (_, marked) in queues.items() if link != "tor0->agg0" and link != "tor1->agg0")
    # What the programs count is what tc says; between both readings a packet may come or go.
    against_tc = {int(packets): often for packets, often in found["against_tc"].items()}
    near = sum(often for packets, often in against_tc.items() if abs(packets) <= 2)
    assert near >= 0.8 * sum(against_tc.values()) > 0
    # Who has which share in a single message depends on whose packets come when the queue is long: nothing is said.
    assert all(done.job("ecmp", name)["iterations"] > 0 for name in ("one", "two"))


@pytest.mark.parametrize("transport", ["reno", "cubic", "mltcp"])
def test_other_congestion_controls_carry_the_same_jobs(transport: str, tmp_path: Path) -> None:
    found = congestion(run(tmp_path, f"{{transport: {transport}}}"))
    assert found["control"].endswith(transport) and found["marked"] > 0


def test_a_short_queue_drops_what_has_no_room_and_tcp_sends_it_again(tmp_path: Path) -> None:
    done = run(tmp_path, "{transport: reno, ecn: {packets: 1000}, buffers: {packets: 12}}")
    found = congestion(done)
    assert done.run("ecmp")["network"]["dropped"] > 0 and found["longest_packets"] <= 12
    assert done.run("ecmp")["fidelity"]["retransmits"] > 0


def test_a_program_of_ones_own_is_loaded_if_nobody_but_root_can_change_it(tmp_path: Path) -> None:
    own = tmp_path / "own.o"
    shutil.copy(OBJECTS / "dctcp.bpf.o", own)
    own.chmod(0o644)
    assert congestion(run(tmp_path, f"{{transport: {{bpf: {own}}}}}"))["marked"] > 0
    own.chmod(0o666)
    refused = run_to_end(tmp_path / "scenario.yaml", tmp_path / "refused")
    assert refused.status == 2
    assert "can be changed by others than root" in refused.error
