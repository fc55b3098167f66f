"""How long a fabric takes to come up, against stock Mininet on the same machine: ``clos96``, and one of 96 hosts.

Ours: from nothing to shaped queues and every job's rules confirmed on all switches, the run's own
Open vSwitch and controller included (``timings_s.programmed`` of a run). Stock: Mininet's own
``build`` and ``start`` of the same nodes and cables on an Open vSwitch that is up already, without
controller and rules; once with the same tc settings, a shell command each as Mininet does it, and
once with no more than its ``TCLink(bw=...)``. Targets: at most a tenth of the first; taken down in at
most 3 s. All in namespaces of their own, one after the other.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any, Final

from benchmarks.common import Line, Run, Scenario, bundled, main, patiently, run, say
from testbed.engines.emulation.namespaces.sandbox import only_run_on_this_machine, spawn
from testbed.errors import RunFailedError
from topologies.fabric import Fabric

TITLE: Final = "Up: clos96 (12 hosts, 48 NICs, 14 switches), and 96 hosts of one NIC with 18 switches"
LARGEST_SHARE: Final = 1 / 10
TAKE_DOWN_S: Final = 3.0
CLASSES: Final = 9
"""HTB classes of an interface: one for the rate, one for each of eight levels."""


def stock_request(fabric: Fabric, bandwidth_scale: float, strict_priority: bool) -> dict[str, Any]:
    """What stock Mininet is to build: node names and (node, node, Mbit/s) per cable, JSON-ready."""
    cables = []
    for link in fabric.network_links:
        if link.name < link.reverse:
            ends = [fabric.ports[end].host if end in fabric.ports else end for end in (link.source, link.target)]
            cables.append([*ends, link.capacity / bandwidth_scale / 1e6])
    return {
        "hosts": list(fabric.hosts),
        "switches": list(fabric.switches),
        "cables": cables,
        "strict_priority": strict_priority,
    }


def stock_mininet(fabric: Fabric, bandwidth_scale: float, strict_priority: bool) -> dict[str, float]:
    """Seconds stock Mininet takes: ``build``, ``start``, ``stop``; ``RunFailedError`` if it does not come up.

    ``strict_priority`` makes it set up the testbed's queues instead of its own.
    """
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        log = Path(folder, "log")
        request = json.dumps(stock_request(fabric, bandwidth_scale, strict_priority)).encode()
        with only_run_on_this_machine():
            say("stock Mininet: starting")
            child = spawn("benchmarks.stock_mininet", request, log)
            assert child.stdout is not None
            answer = child.stdout.read()
            status = child.wait()
        if status != 0:
            last = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()][-1:]
            raise RunFailedError(f"stock Mininet did not come up: {last[0] if last else 'it said nothing'}")
    found: dict[str, float] = json.loads(answer.splitlines()[-1])
    if found["classes"] < (CLASSES if strict_priority else 1):
        raise RunFailedError("stock Mininet came up without its queues")
    return found


def take_down_s(log: str) -> float:
    """Seconds of the take-down that a run's log names; ``RunFailedError`` if it does not."""
    found = re.search(r"take-down: seconds ([0-9.]+)", log)
    if found is None:
        raise RunFailedError("the run's log does not say how long taking down took")
    return float(found[1])


def scenarios() -> list[Scenario]:
    """``clos96``, and 96 hosts of one NIC under 12 ToRs with 6 aggregation switches; for one iteration."""
    measure = {"iterations": 1, "warmup": 0, "time_limit": "60s"}
    clos96 = bundled("clos96") | {"name": "startup-clos96", "measure": measure}
    fabric = {"kind": "clos", "hosts": 96, "gpus_per_host": 8, "nics_per_host": 1, "tors": 12, "aggregations": 6}
    rates = {"port_rate": "100Gbps", "fabric_rate": "100Gbps"}
    job = {"name": "one", "model": "crux-bert", "placement": ["h0", "h8"], "iterations": 1000}
    hosts96 = {"name": "startup-96-hosts", "fabric": {**fabric, **rates}, "jobs": [job], "measure": measure}
    scale = {"bandwidth": 8000, "time": 1}
    return [clos96, {**hosts96, "channels": 1, "schedulers": ["crux"], "scale": scale, "seed": 1, "checks": []}]


def measure(quick: bool) -> list[Line]:
    """One start of each; ``quick`` leaves out the slowest, stock Mininet with the same queues."""
    return [line for scenario in scenarios() for line in _of(scenario, quick)]


def _of(scenario: Scenario, quick: bool) -> list[Line]:
    made = run(scenario, "crux", attempts=1)
    timings: Any = made.record.environment["timings_s"]
    ours, down = float(timings["programmed"]), take_down_s(made.log)
    name = str(scenario["name"])
    lines = [
        Line({"fabric": name, "what": f"  {step}", "ours s": round(float(seconds), 2)})
        for step, seconds in timings.items()
    ]
    for strict_priority in (False,) if quick else (True, False):
        lines.append(_against_stock(name, made, ours, strict_priority))
    columns = {"fabric": name, "what": "taken down", "ours s": round(down, 2)}
    return [*lines, Line(columns, "<= 3 s", "pass" if down <= TAKE_DOWN_S else "missed")]


def _against_stock(name: str, made: Run, ours: float, strict_priority: bool) -> Line:
    scale = made.experiment.scale.bandwidth
    stock = patiently(lambda: stock_mininet(made.experiment.fabric, scale, strict_priority))
    theirs = stock["build"] + stock["start"]
    columns = {
        "fabric": name,
        "what": "up, against " + ("the same tc settings" if strict_priority else "TCLink(bw) alone"),
        "ours s": round(ours, 2),
        "stock s": round(theirs, 2),
        "stock down s": round(stock["stop"], 2),
        "ours / stock": f"{ours / theirs:.2f}",
    }
    if not strict_priority:
        return Line(columns)
    return Line(columns, "<= 1/10 of stock", "pass" if ours <= LARGEST_SHARE * theirs else "missed")


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
