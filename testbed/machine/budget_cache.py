"""Where a machine's measured budget is kept, and whose it is.

One small JSON file: root's in ``/var/cache/testbed``, a user's in ``$XDG_CACHE_HOME/testbed`` (by
default ``~/.cache/testbed``); a user who has none reads root's. A budget counts only on the machine
it was measured on: same CPU, cores, kernel and Open vSwitch; each datapath has its own.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from testbed.machine.budget import BUILT_IN_BUDGETS, Budget, budget_of
from testbed.machine.manifest import cpu_model
from topologies.datapath import Datapath
from workloads.whole_file import write_whole

PLACE: Final = "TESTBED_CACHE"
"""Environment variable: a directory to use instead of all others."""
FILE: Final = "forwarding.json"
SCHEMA_VERSION: Final = 1
_SYSTEM: Final = Path("/var/cache/testbed")


def current_budget(datapath: Datapath) -> Budget:
    """The budget of ``datapath`` measured here, or the built-in one; a file that cannot be read counts as none.

    For more ports than were measured a packet costs as many times more as in the built-in budget.
    """
    key = machine_key(datapath)
    for folder in _folders():
        for entry in _entries(folder / FILE):
            try:
                if entry["machine"] == key:
                    return budget_of(entry["budget"]).with_more_ports(BUILT_IN_BUDGETS[datapath])
            except (KeyError, TypeError, ValueError):
                continue
    return BUILT_IN_BUDGETS[datapath]


def store(budget: Budget, datapath: Datapath) -> Path:
    """Keep ``budget`` of ``datapath`` here, in place of an earlier one; return the file. ``OSError`` if it cannot."""
    path = _folders()[0] / FILE
    key = machine_key(datapath)
    kept = [entry for entry in _entries(path) if entry.get("machine") != key]
    path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    document = {"schema_version": SCHEMA_VERSION, "budgets": [*kept, {"machine": key, "budget": budget.document()}]}
    write_whole(path, json.dumps(document, indent=1), 0o644)
    return path


@cache
def machine_key(datapath: Datapath) -> dict[str, Any]:
    """What decides how much is forwarded: CPU, cores, kernel, Open vSwitch, the datapath."""
    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "openvswitch": _openvswitch_version(),
        "datapath": datapath,
    }


def _folders() -> list[Path]:
    """Where budgets are looked for, in this order; the first is where one is kept."""
    given, xdg = os.environ.get(PLACE), os.environ.get("XDG_CACHE_HOME", "")
    if given:
        return [Path(given)]
    own = [Path(xdg, "testbed")] if os.path.isabs(xdg) else []
    if os.geteuid() != 0 and not own:
        own = [Path(os.path.expanduser("~"), ".cache", "testbed")]
    return [*own, _SYSTEM]


def _entries(path: Path) -> Iterator[dict[str, Any]]:
    try:
        document = json.loads(path.read_text("utf-8"))
        found = document["budgets"] if document["schema_version"] == SCHEMA_VERSION else []
    except (OSError, ValueError, KeyError, TypeError):
        return
    yield from (entry for entry in found if isinstance(entry, dict)) if isinstance(found, list) else ()


def _openvswitch_version() -> str:
    program = shutil.which("ovs-vswitchd", path=os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin")))
    if program is None:
        return ""
    try:
        done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return (done.stdout.partition("\n")[0].split() or [""])[-1]
