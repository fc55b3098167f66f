"""``tools/apart.sh``: what runs in it is as if alone on the machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from emulation_runs import ROOT

from testbed.engines.emulation.namespaces.sandbox import only_run_on_this_machine

pytestmark = [pytest.mark.emulation, pytest.mark.shares_machine]

INSIDE = """
import sys
from pathlib import Path
from testbed.engines.emulation.namespaces.sandbox import LOCK, only_run_on_this_machine
print(f"mode of the lock: {LOCK.stat().st_mode & 0o777:o}")
with only_run_on_this_machine():
    print("the lock is free")
print(len([each for each in Path("/proc").iterdir() if each.name.isdigit()]), "processes")
print(sys.stdin.read())
sys.exit(3)
"""


def apart(*command: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(["tools/apart.sh", *command], cwd=ROOT, input=given, capture_output=True, text=True)


def test_it_has_processes_and_a_lock_of_its_own_and_passes_on_input_and_status() -> None:
    with only_run_on_this_machine():
        done = apart(sys.executable, "-c", INSIDE, given="from outside")
    said = ["mode of the lock: 600", "the lock is free", "2 processes", "from outside"]
    assert (done.returncode, done.stdout.splitlines()) == (3, said), done.stderr


def test_what_it_leaves_running_ends_with_it(tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    assert apart("sh", "-c", f"(sleep 1; touch {sign}) & exit 0").returncode == 0
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(["sh", "-c", f"until [ -e {sign} ]; do sleep 0.1; done"], timeout=2)
