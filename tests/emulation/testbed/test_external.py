"""Real programs as jobs: found, announced, marked, routed and measured, without privileges, and gone afterwards."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from emulation_runs import ROOT, Finished, command, run_text, run_to_end

pytestmark = pytest.mark.emulation

PYTHON = "/usr/bin/python3"
"""The system's: any user may run it, and Debian's packages are there."""
SCENARIO = """
fabric: {{kind: clos, hosts: 4, gpus_per_host: 1, nics_per_host: 1, tors: 2, aggregations: 2, port_rate: 100Gbps,
  fabric_rate: 100Gbps}}
jobs:
  - name: real
    kind: external
    command: {command}
    placement: [h0, h2]
    compute: 0.2s
    communication: 2GB
    flops: 3TFLOP
{more}
schedulers: [{scheduler}]
measure: {{iterations: 6, warmup: 3, time_limit: 60s}}
scale: {{bandwidth: 4000, time: 1}}
"""
BESIDE = "  - {name: synthetic, model: bert, placement: [h1, h3], compute: 0.2s, communication: 2GB, overlap: 0}"
FIXED = "{name: fixed, levels: {real: 2, synthetic: 5}}"
EXAMPLES = "testbed.client.examples"
START_S = 60.0
END_S = 10.0


def text(line: str, more: str = "", scheduler: str = "ecmp") -> str:
    return SCENARIO.format(command=json.dumps(line), more=more, scheduler=scheduler)


def programs(done: Finished, scheduler: str) -> dict[str, Any]:
    found: dict[str, Any] = done.environment(scheduler)["external"]["real"]
    return found


def outputs(done: Finished, scheduler: str) -> str:
    return "".join(path.read_text() for path in sorted((done.directory / scheduler).glob("real.h*.log")))


def left_behind(words: str) -> str:
    return subprocess.run(["pgrep", "-af", words], capture_output=True, text=True, check=False).stdout


def has(module: str) -> bool:
    return subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    line = f"{PYTHON} -m {EXAMPLES}.exchange {{bytes}} 0.2"
    return run_text(text(line, BESIDE, FIXED), tmp_path_factory.mktemp("beside"))


def test_connections_are_found_and_every_direction_has_a_path_and_the_level_of_the_job(beside: Finished) -> None:
    last = beside.decisions("fixed")[-1]
    flows = [flow for flow in last["paths"] if flow.startswith("real:tcp:")]
    assert len(flows) == 4  # two connections, both ways
    assert last["levels"]["real"] == 2
    assert beside.job("fixed", "real")["level"] == 2


def test_packets_follow_the_decision(beside: Finished) -> None:
    """The verdict compares marks of sampled packets, rules on switches and packets along each path with it."""
    kinds = {finding["kind"] for finding in beside.run("fixed")["fidelity"]["findings"]}
    assert not kinds & {"mark", "path", "setting", "loss"}
    assert programs(beside, "fixed")["sent_again"] == {}


def test_a_program_has_its_iterations_beside_those_of_the_synthetic_job(beside: Finished) -> None:
    beside.skip_if_disturbed()
    entry = beside.job("fixed", "real")
    assert entry["iterations"] >= 6
    assert entry["model"] == "external"
    assert entry["iteration_s"]["mean"] == pytest.approx(0.2 + 2e9 * 8 / 100e9, rel=0.1)


def test_the_bytes_of_its_connections_are_measured_in_the_units_of_the_scenario(beside: Finished) -> None:
    sizes = programs(beside, "fixed")["bytes_per_iteration"].values()
    assert sorted(sizes)[-2:] == pytest.approx([2e9, 2e9], rel=0.1)


def test_the_program_is_not_root_has_a_host_of_its_own_and_its_output_is_kept(beside: Finished) -> None:
    said = outputs(beside, "fixed")
    assert "on h0" in said
    assert "on h2" in said
    assert "user 0 " not in said


def test_nothing_is_left_of_a_program(beside: Finished) -> None:
    assert beside.status in (0, 4)
    assert left_behind(f"{EXAMPLES}.exchange") == ""


@pytest.mark.shares_machine
def test_a_killed_run_leaves_nothing_of_a_program(tmp_path: Path) -> None:
    path = tmp_path / "killed.yaml"
    path.write_text(text(f"{PYTHON} -m {EXAMPLES}.exchange {{bytes}} 0.2"))
    run = subprocess.Popen(
        command("run", str(path), "--out", str(tmp_path)),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until = time.monotonic() + START_S
    while not left_behind(f"{EXAMPLES}.exchange") and run.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
    assert left_behind(f"{EXAMPLES}.exchange")
    run.kill()
    run.wait()
    until = time.monotonic() + END_S
    while left_behind(f"{EXAMPLES}.exchange") and time.monotonic() < until:
        time.sleep(0.1)
    assert left_behind(f"{EXAMPLES}.exchange") == ""


def test_iterations_of_a_program_that_says_nothing_are_found_in_its_traffic(tmp_path: Path) -> None:
    line = f"{PYTHON} -m {EXAMPLES}.exchange {{bytes}} 0.2 --silent"
    done = run_text(text(line, "    progress: traffic"), tmp_path)
    done.skip_if_disturbed()
    assert done.job("ecmp", "real")["iteration_s"]["mean"] == pytest.approx(0.2 + 2e9 * 8 / 100e9, rel=0.1)


@pytest.mark.shares_machine
def test_a_command_that_fails_ends_the_run_with_its_last_words(tmp_path: Path) -> None:
    path = tmp_path / "failing.yaml"
    path.write_text(text("sh -c 'echo first >&2; echo the last words >&2; exit 3'"))
    done = run_to_end(path, tmp_path / "runs")
    assert done.status == 1
    assert "job real: the command on host h" in done.error
    assert "ended with status 3: the last words" in done.error
    assert "Traceback" not in done.error
    assert (done.directory / "UNFINISHED").exists()


@pytest.mark.shares_machine
def test_a_command_that_ends_too_early_is_told(tmp_path: Path) -> None:
    path = tmp_path / "early.yaml"
    path.write_text(text("true"))
    done = run_to_end(path, tmp_path / "runs")
    assert done.status == 1
    assert "job real: its command ended after 0 iterations, 9 were asked for" in done.error


def test_mpi4py_sums_over_the_emulated_fabric(tmp_path: Path) -> None:
    if not has("mpi4py.MPI"):
        pytest.skip("no mpi4py for the system's Python: apt-get install openmpi-bin python3-mpi4py")
    program = f"{PYTHON} -m testbed.client.mpirun {PYTHON} -m {EXAMPLES}.allreduce_mpi {{bytes}} 0.2"
    done = run_text(text(program, BESIDE, FIXED), tmp_path)
    sizes = programs(done, "fixed")["bytes_per_iteration"]
    assert sorted(sizes.values())[-2:] == pytest.approx([2e9, 2e9], rel=0.1)
    done.skip_if_disturbed()
    assert done.job("fixed", "real")["iteration_s"]["mean"] == pytest.approx(0.2 + 2e9 * 8 / 100e9, rel=0.15)


def test_torch_averages_gradients_over_the_emulated_fabric(tmp_path: Path) -> None:
    if not has("torch.distributed"):
        pytest.skip("no PyTorch for the system's Python: apt-get install python3-torch")
    line = f"{PYTHON} -m {EXAMPLES}.step_torch 125000 0.2"
    done = run_text(text(line), tmp_path)
    sizes = programs(done, "ecmp")["bytes_per_iteration"]
    assert sorted(sizes.values())[-2:] == pytest.approx([2e9, 2e9], rel=0.15)


@pytest.mark.shares_machine
def test_under_sudo_a_program_has_the_rights_of_the_user_who_called_it() -> None:
    user = 31_415  # whom nobody has: enough for the kernel, and for files
    with tempfile.TemporaryDirectory(prefix="testbed-user-") as name:
        folder = Path(name)
        (folder / "real.yaml").write_text(text(f"{PYTHON} -m {EXAMPLES}.exchange {{bytes}} 0.2"))
        shutil.chown(folder, user, user)
        sudo = {"SUDO_UID": str(user), "SUDO_GID": str(user), "SUDO_USER": "somebody"}
        start = [sys.executable, "-P", "-m", "testbed"]
        done = run_to_end("real.yaml", folder / "runs", start=start, cwd=folder, environment=sudo)
        assert done.status in (0, 4), done.error
        assert f"user {user} on h0" in outputs(done, "ecmp")
        assert {path.stat().st_uid for path in (done.directory / "ecmp").iterdir()} == {user}
