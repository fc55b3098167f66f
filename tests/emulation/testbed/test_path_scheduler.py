"""The example that chooses paths, on packets: they take the paths that it chose, and nobody waits for a shared link."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from pathlib import Path
from statistics import mean

import pytest
from emulation_runs import ROOT, Finished, run_to_end, run_until_believable

pytestmark = pytest.mark.emulation

EXAMPLE = ROOT / "docs" / "examples" / "least_loaded"
ENTRY_POINT = "[testbed.schedulers]\nleast-loaded = least_loaded:LeastLoaded\n"


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A run of the example's scenario, the example installed where every user may read it."""
    installed = tmp_path_factory.mktemp("installed")
    metadata = installed / "least_loaded-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: least-loaded\nVersion: 1.0\n", "utf-8")
    (metadata / "entry_points.txt").write_text(ENTRY_POINT, "utf-8")
    shutil.copy(EXAMPLE / "least_loaded.py", installed)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", os.pathsep.join((str(installed), os.environ.get("PYTHONPATH", ""))))
        return run_until_believable(EXAMPLE / "pairs.yaml", tmp_path_factory.mktemp("runs"), "--json")


def test_the_run_ends_well(pairs: Finished) -> None:
    assert pairs.status in (0, 4), pairs.error
    assert [run["scheduler"] for run in pairs.summary["runs"]] == ["ecmp", "least-loaded"]


def test_no_two_flows_share_a_link_and_every_packet_was_on_its_path(pairs: Finished) -> None:
    arrival = [row for row in pairs.decisions("least-loaded") if row["cause"] == "arrival of two"][-1]
    used = Counter(link for path in arrival["paths"].values() for link in path)
    assert len(arrival["paths"]) == 8 and set(used.values()) == {1}
    assert not any("path" in reason for reason in pairs.run("least-loaded")["fidelity"]["reasons"])


def test_nobody_waits_for_a_shared_link(pairs: Finished) -> None:
    pairs.skip_if_disturbed()
    assert pairs.run("least-loaded")["gpu_utilization"] > 0.95


def test_under_ecmp_jobs_wait_as_the_flow_engine_says(pairs: Finished, tmp_path: Path) -> None:
    """Two jobs that hinder each other drift apart, on real machines faster: the flow engine has them as far apart."""
    pairs.skip_if_disturbed()
    apart = tmp_path / "apart.yaml"
    text = (EXAMPLE / "pairs.yaml").read_text("utf-8")
    apart.write_text(text.replace("name: two,", f"name: two, start: {seconds_apart(pairs):.4f}s,"), "utf-8")
    flow = run_to_end(apart, tmp_path / "flow", "--engine", "flow", "--scheduler", "ecmp", "--json")
    expected = flow.run("ecmp")["gpu_utilization"]
    assert expected < 0.95
    assert pairs.run("ecmp")["gpu_utilization"] == pytest.approx(expected, abs=0.03)


def seconds_apart(pairs: Finished) -> float:
    """By how much the iterations of one job that count begin before or after the other's, the mean of them."""
    begin = {(row["job"], row["iteration"]): float(row["start_s"]) for row in pairs.rows("ecmp", "iterations.csv")}
    counted = {row["iteration"] for row in pairs.rows("ecmp", "iterations.csv") if row["disturbed"] == "0"} - {"0"}
    both = [each for each in counted if {("one", each), ("two", each)} <= begin.keys()]  # either may end first
    return mean(abs(begin["one", each] - begin["two", each]) for each in both)
