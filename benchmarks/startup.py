"""How long the fabric of ``clos96`` takes to come up, against stock Mininet on the same machine.

Ours: from nothing to shaped queues and every job's rules confirmed on all switches, the run's own
Open vSwitch and controller included (``timings_s.programmed`` of a run). Stock: ``Mininet.start``
with one ``TCLink`` (HTB at the same scaled rate) per cable, the same user-space bridges, on an Open
vSwitch that is up already; no controller and no rules. Targets: at most a third; taken down in at
most 3 s. Both in namespaces of their own, one after the other.
"""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any, Final

from benchmarks.common import Line, Run, bundled, main, patiently, run, say
from testbed.engine.sandbox import only_run_on_this_machine, spawn
from testbed.errors import RunFailedError
from topologies.fabric import Fabric

TITLE: Final = "clos96 up: 12 hosts, 48 NICs, 14 switches, 96 cables"
LARGEST_SHARE: Final = 1 / 3
TAKE_DOWN_S: Final = 3.0


def stock_request(fabric: Fabric, bandwidth_scale: float) -> dict[str, Any]:
    """What stock Mininet is to build: node names and (node, node, Mbit/s) per cable, JSON-ready."""
    cables = []
    for link in fabric.network_links:
        if link.name < link.reverse:
            ends = [fabric.ports[end].host if end in fabric.ports else end for end in (link.source, link.target)]
            cables.append([*ends, link.capacity / bandwidth_scale / 1e6])
    return {"hosts": list(fabric.hosts), "switches": list(fabric.switches), "cables": cables}


def stock_mininet(fabric: Fabric, bandwidth_scale: float) -> dict[str, float]:
    """Seconds stock Mininet takes: ``build``, ``start``, ``stop``; ``RunFailedError`` if it does not come up."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        request, log = Path(folder, "request.json"), Path(folder, "log")
        request.write_text(json.dumps(stock_request(fabric, bandwidth_scale)), "utf-8")
        with only_run_on_this_machine():
            say("stock Mininet: starting")
            child = spawn("benchmarks.stock_mininet", request, log)
            answer = child.communicate()[0]
        if child.returncode != 0:
            last = [line for line in log.read_text("utf-8", "replace").splitlines() if line.strip()][-1:]
            raise RunFailedError(f"stock Mininet did not come up: {last[0] if last else 'it said nothing'}")
    found: dict[str, float] = json.loads(answer.splitlines()[-1])
    return found


def take_down_s(log: str) -> float:
    """Seconds of the take-down that a run's log names; ``RunFailedError`` if it does not."""
    found = re.search(r"take-down: seconds ([0-9.]+)", log)
    if found is None:
        raise RunFailedError("the run's log does not say how long taking down took")
    return float(found[1])


def measure(quick: bool) -> list[Line]:
    """One start of each; ``quick`` is the same."""
    scenario = bundled("clos96") | {"name": "startup", "measure": {"iterations": 1, "warmup": 0, "limit": "60s"}}
    made = run(scenario, "crux", attempts=1)
    timings: Any = made.record.environment["timings_s"]
    stock = patiently(lambda: stock_mininet(made.experiment.fabric, made.experiment.scale.bandwidth))
    ours, theirs = float(timings["programmed"]), stock["build"] + stock["start"]
    down = take_down_s(made.log)
    return [
        *_steps(made, stock),
        Line(
            {"what": "up, shaped and programmed", "ours s": round(ours, 2), "stock s": round(theirs, 2)},
            f"<= 1/3 of stock, here {ours / theirs:.2f}",
            "pass" if ours <= LARGEST_SHARE * theirs else "missed",
        ),
        Line(
            {"what": "taken down", "ours s": round(down, 2), "stock s": round(stock["stop"], 2)},
            "<= 3 s",
            "pass" if down <= TAKE_DOWN_S else "missed",
        ),
    ]


def _steps(made: Run, stock: dict[str, float]) -> list[Line]:
    timings: Any = made.record.environment["timings_s"]
    return [
        *(Line({"what": f"  {name}", "ours s": round(float(seconds), 2)}) for name, seconds in timings.items()),
        *(Line({"what": f"  Mininet's {name}", "stock s": round(stock[name], 2)}) for name in ("build", "start")),
    ]


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
