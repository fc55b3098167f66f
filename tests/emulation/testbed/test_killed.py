"""A run that is killed, at whatever moment, leaves nothing behind on the machine."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from emulation_runs import ROOT, command, run_to_end

from testbed.engines.emulation.namespaces.sandbox import LOCK
from testbed.machine.file_lock import is_held

pytestmark = [pytest.mark.emulation, pytest.mark.shares_machine, pytest.mark.xdist_group("killed")]

MOMENTS = 20
LAST_MOMENT_S = 7.0
GONE_WITHIN_S = 10.0


def traces() -> dict[str, object]:
    """What a run could leave: processes, namespaces, interfaces, the lock."""
    owned, namespaces = set(), set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if b"TESTBED_RUN=" in (entry / "environ").read_bytes():
                owned.add((entry.name, (entry / "comm").read_text().strip()))
            namespaces.add(os.readlink(entry / "ns/net"))
        except OSError:
            continue
    interfaces = sorted(name for _, name in socket.if_nameindex())
    return {"processes": owned, "namespaces": namespaces, "interfaces": interfaces, "lock": lock_is_held()}


def lock_is_held() -> bool:
    return is_held(LOCK)


@pytest.fixture(scope="module")
def users_openvswitch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An Open vSwitch that is not the run's, with a bridge of its user's, in a namespace of its own."""
    folder = tmp_path_factory.mktemp("users-openvswitch")
    environment = dict(os.environ, OVS_RUNDIR=str(folder), OVS_DBDIR=str(folder), OVS_LOGDIR=str(folder))
    script = (
        "ip link set lo up; ovsdb-tool create $OVS_DBDIR/conf.db /usr/share/openvswitch/vswitch.ovsschema;"
        "ovsdb-server $OVS_DBDIR/conf.db --remote=punix:$OVS_RUNDIR/db.sock -vconsole:off &"
        "until ovs-vsctl --no-wait init; do sleep 0.05; done;"
        "exec ovs-vswitchd unix:$OVS_RUNDIR/db.sock -vconsole:off"
    )
    holder = subprocess.Popen(
        ["unshare", "--net", "--pid", "--fork", "--kill-child", "sh", "-c", script],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 15
    while not (folder / "db.sock").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    subprocess.run(
        [
            "ovs-vsctl",
            "--retry",
            "--timeout=15",
            "add-br",
            "mine",
            "--",
            "set",
            "bridge",
            "mine",
            "datapath_type=netdev",
        ],
        env=environment,
        check=True,
    )
    yield environment
    holder.kill()
    holder.wait()


def bridges(environment: dict[str, str]) -> str:
    return subprocess.run(
        ["ovs-vsctl", "--timeout=15", "--columns=name,ports,datapath_id", "list", "bridge"],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@pytest.mark.parametrize("moment", range(MOMENTS))
def test_kill_at_any_moment_leaves_nothing(
    moment: int, tmp_path: Path, users_openvswitch: dict[str, str], free_machine: None
) -> None:
    before, bridges_before = traces(), bridges(users_openvswitch)
    run = subprocess.Popen(
        command("run", "hello.yaml", "--out", str(tmp_path)),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    time.sleep(LAST_MOMENT_S * moment / (MOMENTS - 1))
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    deadline = time.monotonic() + GONE_WITHIN_S
    while traces() != before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert traces() == before
    assert bridges(users_openvswitch) == bridges_before
    for directory in tmp_path.iterdir():
        assert (directory / "UNFINISHED").exists()


@pytest.fixture
def free_machine() -> None:
    """Wait until no other run has the machine."""
    deadline = time.monotonic() + 300
    while lock_is_held() and time.monotonic() < deadline:
        time.sleep(0.2)


def test_after_all_that_the_next_run_works(tmp_path: Path) -> None:
    done = run_to_end("hello.yaml", tmp_path, "--set", "measure.iterations=1", "--scheduler", "ecmp")
    assert done.status in (0, 4), done.error
