"""The simulation of packets: million packet hops per CPU second, by transport, size of the fabric and bytes.

Every host sends to one under another ToR, all at once, on paths that a hash gives them, so that many share links. One
core; the first run of each network compiles and does not count. ``window`` is the network of an emulation, the others
are at line rate with pauses. With ``--htsim FOLDER`` another simulator does the same beside ours.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from statistics import median
from typing import Final, Protocol

import yaml

from benchmarks.common import Line, Outcome, parser_of, report, say, show, status_of
from benchmarks.rdma import htsim_rows
from controller.ecmp_hash import ecmp_path
from testbed.api import prepare
from testbed.engines.flow.networks.packet_network import PacketNetwork
from testbed.engines.flow.networks.rdma_network import RdmaNetwork
from testbed.errors import EXIT_BAD_INPUT
from testbed.experiment.experiment import Experiment, Scale
from testbed.experiment.network_model import AS_EMULATED, NetworkModel
from testbed.rdma.transports.dispatch import defaults_of
from topologies.fabric import Path as LinkPath
from workloads.job import Flow

TITLE: Final = "The simulation of packets: million packet hops per CPU second of one core"
HOSTS: Final = (32, 128, 320)
PACKETS: Final = (2000, 8000)
"""Full packets that each host sends."""
TARGETS: Final = {"window": 8.0, "unlimited": 0.0, "dcqcn": 4.0, "dctcp": 0.0, "hpcc": 0.0}
ATTEMPTS: Final = 3
WINDOW_SCALE: Final = Scale(130.0, 1.0)
LINEAR: Final = 1.15
"""A packet hop of four times the bytes may cost so many times as much."""


class _Network(Protocol):
    def add(self, way: Sequence[str], level: int, slice_size: float = 0.0) -> int: ...
    def begin(self, place: int, size: float, lead: float, after: int | None, consumed: float) -> None: ...
    def send(self, place: int, sending: bool) -> None: ...
    def run(self, now: float, until: float) -> tuple[float, list[int]]: ...


@dataclass(frozen=True)
class Load:
    """What is sent on a fabric: ``paths`` of all flows, full ``packets`` each."""

    experiment: Experiment
    paths: tuple[LinkPath, ...]
    packets: int

    @property
    def hops(self) -> int:
        """Links that packets pass in all."""
        return self.packets * sum(map(len, self.paths))


def load(transport: str, hosts: int, packets: int) -> Load:
    """A permutation of ``hosts``; eight to a ToR, and as many aggregation switches."""
    fabric = {"kind": "clos", "hosts": hosts, "gpus_per_host": 1, "nics_per_host": 1, "tors": hosts // 8}
    rates = {"aggregations": 8, "port_rate": "200Gbps", "fabric_rate": "200Gbps"}
    document = {
        "fabric": {**fabric, **rates},
        "jobs": [{"name": "a", "model": "bert", "placement": ["h0", "h1"]}],
        "schedulers": ["ecmp"],
    }
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        path = Path(folder, "scenario.yaml")
        path.write_text(yaml.safe_dump(document), "utf-8")
        (experiment,) = prepare(path, engine="simulation").experiments
    window = transport == "window"
    model = AS_EMULATED if window else NetworkModel(transport, defaults_of(transport))  # type: ignore[arg-type]
    experiment = replace(experiment, network=model, scale=WINDOW_SCALE if window else Scale(1.0, 1.0))
    ports = [f"h{number}n0p0" for number in range(hosts)]
    pairs = zip(ports, ports[hosts // 2 :] + ports[: hosts // 2], strict=True)
    flows = [Flow(f"f{n}", "a", source, target, 0.0, 20000 + n, 5000) for n, (source, target) in enumerate(pairs)]
    return Load(experiment, tuple(ecmp_path(experiment.fabric, flow, 1) for flow in flows), packets)


def seconds(what: Load) -> float:
    """CPU seconds that all of it takes."""
    capacity = {name: link.capacity for name, link in what.experiment.fabric.links.items()}
    window = what.experiment.network is AS_EMULATED
    network: _Network = (PacketNetwork if window else RdmaNetwork)(capacity, what.experiment)
    size = what.packets * (8960 * WINDOW_SCALE.bandwidth if window else 4096.0)
    begin = time.process_time()
    for path in what.paths:
        place = network.add(path, 0)
        network.begin(place, size, inf, None, 0.0)
        network.send(place, True)
    now, ended = 0.0, 0
    while ended < len(what.paths):
        now, reached = network.run(now, inf)
        ended += len(reached)
    return time.process_time() - begin


def measure(quick: bool) -> list[Line]:
    """A row per transport and fabric."""
    lines = []
    for transport, wanted in TARGETS.items():
        seconds(load(transport, HOSTS[0], 1))
        for hosts in HOSTS[:1] if quick else HOSTS:
            say(f"{transport}, {hosts} hosts")
            speeds = [_speed(load(transport, hosts, packets)) for packets in PACKETS]
            growth = speeds[0] / speeds[1]
            columns = {
                "transport": transport,
                "hosts": hosts,
                **{f"{packets} packets each": f"{speed:.2f}" for packets, speed in zip(PACKETS, speeds, strict=True)},
                "growth": f"{growth:.2f}",
            }
            met = min(speeds) >= wanted and growth <= LINEAR
            outcome: Outcome = ("pass" if met else "missed") if wanted else ""
            lines.append(Line(columns, f"{wanted:g}, growth {LINEAR:g}" if wanted else "", outcome))
    return lines


def _speed(what: Load) -> float:
    return what.hops / median(seconds(what) for _ in range(ATTEMPTS)) / 1e6


def main() -> int:
    """Parse the command line, measure, show, and return the exit status."""
    parser = parser_of(TITLE)
    parser.add_argument("--quick", action="store_true", help="the smallest fabric only")
    parser.add_argument("--htsim", type=Path, metavar="FOLDER", help="sim/datacenter of csg-htsim, built")
    given = parser.parse_args()
    missing = htsim_rows.missing(given.htsim) if given.htsim else []
    if missing:
        say(f"{given.htsim} has no {', '.join(missing)}")
        return EXIT_BAD_INPUT
    lines = measure(given.quick)
    if not given.htsim:
        say(htsim_rows.HOW)
        return report(TITLE, lines, as_json=given.json)
    beside = htsim_rows.rows(given.htsim, given.quick)
    if given.json:
        return report(TITLE, lines + beside, as_json=True)
    show(TITLE, lines, as_json=False)
    show(htsim_rows.TITLE, beside, as_json=False)
    return status_of(lines + beside)


if __name__ == "__main__":
    raise SystemExit(main())
