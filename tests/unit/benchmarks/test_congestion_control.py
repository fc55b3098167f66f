"""Rows of congestion control beside analysis: what passes, and a part of it measured."""

from __future__ import annotations

from pathlib import Path

from benchmarks.rdma.compared import at_least, at_most, compared
from benchmarks.rdma.pause_victims import unfairness


def test_a_number_passes_within_its_margin() -> None:
    assert [compared("a", 2, here, 10.0, 0.1, "").outcome for here in (8.9, 9.1, 10.9, 11.1)] == [
        "missed",
        "pass",
        "pass",
        "missed",
    ]
    assert [compared("a", 2, here, 10.0, (0.5, 0.0), "").outcome for here in (5.1, 10.1)] == ["pass", "missed"]
    assert compared("a", 2, 99.0, 10.0, None, "").outcome == ""
    assert [at_most("a", 2, here, 10.0, "").outcome for here in (9.0, 11.0)] == ["pass", "missed"]
    assert [at_least("a", 2, here, 10.0, "").outcome for here in (9.0, 11.0)] == ["missed", "pass"]


def test_pauses_share_by_port_and_dcqcn_by_flow(tmp_path: Path) -> None:
    rows = list(unfairness(tmp_path))
    assert [row.outcome for row in rows] == ["pass"] * 8
    assert {str(row.columns["what"]).split(":")[0] for row in rows} == {"unlimited", "dcqcn"}
