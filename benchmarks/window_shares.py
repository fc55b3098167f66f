"""How flows that wait in their own NIC and behind others share both, with packets: what the flow engine rests on.

Three jobs of two hosts each: ``long`` and ``beside`` leave by one NIC, ``long`` and ``behind`` arrive at another.
Max-min fairness gives ``long`` a half of both. Fixed windows give it 1 / (2 + k), where k is the share of its window
that a flow may have waiting in its own NIC (:data:`testbed.fluid.proportional.AT_OWN_NIC`). k follows from the
iterations of ``long``, also where the flow engine simulates the packets. No target: a row is what a connection count
and a length of messages come to.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import yaml

from benchmarks.common import Line, doubts_of, main, run
from testbed.api import run_scenario
from testbed.fluid.proportional import AT_OWN_NIC

TITLE: Final = "Shares of flows with fixed windows"
FABRIC: Final = {
    "kind": "clos",
    "hosts": 4,
    "gpus_per_host": 2,
    "nics_per_host": 1,
    "tors": 2,
    "aggregations": 2,
    "port_rate": "100Gbps",
    "fabric_rate": "400Gbps",
}
PORT_BYTES_PER_S: Final = 12.5e9
PLACEMENT: Final = {"long": ("h0:0", "h1:0"), "beside": ("h0:1", "h2:0"), "behind": ("h3:0", "h1:1")}
GIGABYTES: Final = ((5.0, 7.3), (9.0, 7.3), (20.0, 29.0))
"""Of ``long`` and of the others: no ratio at which their iterations lock."""
CHANNELS: Final = (1, 8)
BANDWIDTH: Final = 4000
PACKET_BYTES: Final = 8960


def scenario(of_long: float, of_others: float, channels: int) -> dict[str, Any]:
    """Three jobs that send all the time."""
    sizes = {"long": of_long, "beside": of_others, "behind": of_others}
    jobs = [
        {
            "name": name,
            "model": "resnet",
            "collective": "point-to-point",
            "placement": list(gpus),
            "compute": "1ms",
            "overlap": 0,
            "communication": f"{sizes[name]}GB",
            "iterations": 100,
        }
        for name, gpus in PLACEMENT.items()
    ]
    return {
        "name": "window-shares",
        "fabric": FABRIC,
        "jobs": jobs,
        "channels": channels,
        "measure": {"iterations": 8, "warmup": 2, "time_limit": "60s"},
        "scale": {"bandwidth": BANDWIDTH, "time": 1},
        "checks": [],
    }


def share_of_long(summary: Mapping[str, Any], gigabytes: float) -> float:
    """The share of its port that ``long`` had."""
    (found,) = (job["iteration_s"]["mean"] for job in summary["jobs"] if job["name"] == "long")
    return gigabytes * 1e9 / float(found) / PORT_BYTES_PER_S


def simulated(of_long: float, of_others: float, channels: int) -> float:
    """The share of its port that ``long`` has if the packets are simulated."""
    with TemporaryDirectory(prefix="benchmark-") as folder:
        path = Path(folder) / "scenario.yaml"
        document = scenario(of_long, of_others, channels) | {"schedulers": ["ecmp"]}
        path.write_text(yaml.safe_dump(document), "utf-8")
        (found,) = run_scenario(path, engine="simulation", out=folder).summary["runs"]
        return share_of_long(found, of_long)


def measure(quick: bool) -> list[Line]:
    """A row per number of connections and size of messages."""
    lines = []
    for channels in CHANNELS:
        for of_long, of_others in GIGABYTES[:1] if quick else GIGABYTES:
            made = run(scenario(of_long, of_others, channels), "ecmp")
            share = share_of_long(made.summary, of_long)
            columns = {
                "channels": channels,
                "packets a message": round(of_long * 1e9 / BANDWIDTH / channels / PACKET_BYTES),
                "share of long": f"{share:.3f}",
                "simulated": f"{simulated(of_long, of_others, channels):.3f}",
                "k": f"{1 / share - 2:.2f}",
                "k of the flow engine": AT_OWN_NIC,
            }
            lines.append(Line(columns, note=doubts_of(made)))
    return lines


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
