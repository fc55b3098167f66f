"""The rows of csg-htsim, with a program in its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.rdma.htsim import PACKET_S, ROUND_TRIP_S, Done, Work, in_htsim, in_ours
from benchmarks.rdma.htsim_rows import missing
from testbed.errors import RunFailedError

PROGRAM = """#!/bin/sh
cat "$4" > "$0.seen"
echo "CWND1 5 at 3 src x"
echo "Flow Roce_0_1 77 finished at 12.5 total bytes 8192"
echo "Flow HPCC_1_0 finished at 14 total bytes 8192"
"""
NEIGHBOURS = Work(4, ((0, 1), (1, 0)), 2)


def test_ends_are_read_from_what_it_prints_and_it_is_told_who_sends(tmp_path: Path) -> None:
    program = tmp_path / "htsim_any"
    program.write_text(PROGRAM, "utf-8")
    program.chmod(0o755)
    assert in_htsim(NEIGHBOURS, tmp_path, "htsim_any", tmp_path).ends_s == pytest.approx((12.5e-6, 14e-6))
    seen = (tmp_path / "htsim_any.seen").read_text("utf-8").splitlines()
    assert seen == ["Nodes 16", "Connections 2", "0->1 id 1 start 0 size 8192", "1->0 id 2 start 0 size 8192"]


def test_a_message_that_does_not_end_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.rdma.htsim.time.sleep", lambda seconds: None)
    program = tmp_path / "htsim_any"
    program.write_text("#!/bin/sh\nexit 3\n", "utf-8")
    program.chmod(0o755)
    with pytest.raises(RunFailedError, match="status 3, 0 of 2 messages ended"):
        in_htsim(NEIGHBOURS, tmp_path, "htsim_any", tmp_path)


@pytest.mark.parametrize(("pair", "links"), [((0, 1), 2), ((0, 2), 4), ((0, 4), 6)])
def test_alone_a_message_takes_its_packets_and_a_round_trip(tmp_path: Path, pair: tuple[int, int], links: int) -> None:
    work = Work(4, (pair,), 100)
    assert work.links == links
    done: Done = in_ours(work, "unlimited", tmp_path)
    assert done.ends_s == pytest.approx([99 * PACKET_S + ROUND_TRIP_S], rel=1e-6)


def test_programs_that_were_not_built_are_named(tmp_path: Path) -> None:
    (tmp_path / "htsim_roce").touch()
    assert missing(tmp_path) == ["htsim_hpcc"]
