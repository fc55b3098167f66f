from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from topologies.addressing import mac_of
from topologies.clos import clos

pytestmark = [
    pytest.mark.emulation,
    pytest.mark.shares_machine,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
    pytest.mark.skipif(shutil.which("ovs-vswitchd") is None, reason="needs Open vSwitch"),
]

HERE = Path(__file__).parent
FABRIC = clos(hosts=4, gpus_per_host=1, nics_per_host=1, tors=2, aggregations=2, port_rate=1e9, fabric_rate=1e9)


def live(directory: Path, scheduler: str, library: str) -> dict[str, Any]:
    module = {"ryu": "ryu", "os-ken": "os_ken"}[library]
    pytest.importorskip(module, exc_type=ImportError)
    root = HERE.parents[2]
    finished = subprocess.run(
        [
            "unshare",
            "-n",
            "-m",
            "-p",
            "-f",
            "--mount-proc",
            "--kill-child",
            sys.executable,
            str(HERE / "controller_live_driver.py"),
            str(directory),
            scheduler,
        ],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "TESTBED_OPENFLOW": library},
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert finished.returncode == 0, finished.stderr
    result: dict[str, Any] = json.loads(finished.stdout)
    return result


@pytest.mark.parametrize("library", ["ryu", "os-ken"])
def test_crux_is_carried_out_on_real_switches(tmp_path: Path, library: str) -> None:
    result = live(tmp_path, "crux", library)
    assert all(answer["confirmed"] for answer in (*result["posted"], result["committed"], *result["deleted"]))
    decision = result["posted"][1]["decision"]
    assert decision["levels"] == {"a": 1, "b": 0}
    for flow, arrived in result["after_commit"].items():
        target = "h2n0p0" if flow.endswith("/0") else "h0n0p0"
        level = decision["levels"][flow[0]]
        assert arrived == {
            "eth_dst": mac_of(FABRIC, target),
            "dscp": 8 * (7 - level),
            "source_port": (20000 if flow[0] == "a" else 21000) + int(flow[-1]),
        }
    assert all(result["before_commit"].values())
    held = {(switch, rule["match"]["source_port"]) for switch, rules in result["rules"].items() for rule in rules}
    for flow, path in decision["paths"].items():
        source_port = (20000 if flow[0] == "a" else 21000) + int(flow[-1])
        assert {(FABRIC.links[link].source, source_port) for link in path[1:]} <= held
    assert result["left"] == {switch: [] for switch in FABRIC.switches}
    assert result["after_delete"] is None
    assert result["status"] == 0
    assert result["output"].startswith("controller ready: OpenFlow 127.0.0.1:6653, REST http://127.0.0.1:")
    assert result["impostor_refused"] and result["state_after"] == result["state"]
    refused = "refused a second switch with datapath id 0000000100000001, which is connected"
    assert result["errors"] == f"controller: {refused}\n"


def test_the_way_that_real_select_groups_chose_is_read_back(tmp_path: Path) -> None:
    result = live(tmp_path, "ecmp-switch", "ryu")
    assert all(result["after_commit"].values())
    assert result["observed_paths"].keys() == {"a/0", "a/1", "b/0", "b/1"}
    for flow, path in result["observed_paths"].items():
        source, target = ("h0n0p0", "h2n0p0") if flow.endswith("/0") else ("h2n0p0", "h0n0p0")
        assert tuple(path) in FABRIC.candidate_paths(source, target)
