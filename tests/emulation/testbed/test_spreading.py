"""Packets of a flow over all its paths: even shares, packets out of order and none sent again."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulation_runs import Finished, run_to_end

pytestmark = pytest.mark.emulation


def run(tmp_path: Path, balancing: str, *more: str) -> Finished:
    network = f"network={{load_balancing: {balancing}, flowlet_gap: 20ms}}"
    done = run_to_end("hello.yaml", tmp_path, "--scheduler", "crux", "--set", network, *more, "--allow-degraded")
    assert done.status in (0, 5), done.error
    reasons = done.run("crux")["fidelity"]["reasons"]
    asked_for = ("switch ", "sent again", "path", "out of order", "rule")
    assert not [reason for reason in reasons if any(word in reason for word in asked_for)], reasons
    return done


@pytest.mark.parametrize("balancing", ["spray", "spray-in-turn", "flowlet"])
def test_packets_take_all_paths_and_nothing_is_sent_again(balancing: str, tmp_path: Path) -> None:
    done = run(tmp_path, balancing)
    groups = done.environment("crux")["spread"]
    assert {group["switch"] for group in groups} == {"tor0", "tor1"}
    assert all(min(group["packets"]) > 100 for group in groups)
    assert done.run("crux")["fidelity"]["retransmits"] == 0
    if balancing == "spray":
        assert done.run("crux")["out_of_order"] > 0
    if balancing == "spray-in-turn":
        assert done.run("crux")["spread_error"] < 0.01


def test_a_cable_that_fails_has_no_share_any_more(tmp_path: Path) -> None:
    failures = "failures=[{link: tor0->agg0, at: 2.05s}]"
    done = run(tmp_path, "spray-in-turn", "--set", failures)
    assert "spread" not in done.environment("crux"), "one path is left: no group"


def test_a_datapath_that_spreads_nothing_is_refused_in_one_line(tmp_path: Path) -> None:
    options = ["--datapath", "userspace", "--set", "network={load_balancing: spray}"]
    done = run_to_end("hello.yaml", tmp_path, *options)
    assert done.status == 2
    assert "the datapath userspace has no spray, expected nftables" in done.error
