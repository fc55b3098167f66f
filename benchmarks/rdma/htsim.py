"""The same messages in csg-htsim (github.com/Broadcom/csg-htsim), a packet simulator in C++, and in ours.

Its programs are run, and what they print is read. Beside its fat trees of three layers ours are Clos fabrics with as
many links on each way. The rate of its links has headers of 64 bytes in it, and is one of whole picoseconds per byte;
ours, which count payload, are slower by the headers. Its answers are packets, which take room on links; ours are not.
"""

from __future__ import annotations

import re
import resource
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from benchmarks.rdma.traffic import Traffic, experiment_on, network_model
from controller.ecmp_hash import ecmp_path
from testbed.errors import RunFailedError
from testbed.experiment.network_model import Buffers, Delays, NetworkModel
from workloads.job import Flow

LINK_MBPS: Final = 100_000
PAYLOAD: Final = 4096
HEADER: Final = 64
"""``ACKSIZE`` of its packets."""
PAYLOAD_GBPS: Final = LINK_MBPS / 1e3 * PAYLOAD / (PAYLOAD + HEADER)
PAUSE_PACKETS: Final = 250
"""A queue of what came over one link is paused beyond so many packets, here as there."""
RESUME_PACKETS: Final = 248
ROUND_TRIP_S: Final = 12e-6
"""``HPCCSrc::_T``; delays of cables are such that packets take so long."""
PACKET_S: Final = PAYLOAD * 8 / (PAYLOAD_GBPS * 1e9)
TRIES: Final = 3
_FLOW_ENDS: Final = re.compile(r"^Flow \S+ .*?finished at (\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Work:
    """Messages of ``packets`` full packets on a fat tree of switches with ``radix`` ports: source and target hosts."""

    radix: int
    pairs: tuple[tuple[int, int], ...]
    packets: int

    @property
    def hosts(self) -> int:
        """All hosts of the fat tree."""
        return self.radix**3 // 4

    @property
    def links(self) -> int:
        """On the way of the first message; the others are to have as many."""
        source, target = self.pairs[0]
        half = self.radix // 2
        if source // half == target // half:
            return 2
        return 4 if source // half**2 == target // half**2 else 6

    @property
    def hops(self) -> int:
        """Links that packets pass in all."""
        return len(self.pairs) * self.packets * self.links

    @property
    def delay_s(self) -> float:
        """Of each cable, for the round trip of ``ROUND_TRIP_S``."""
        return (ROUND_TRIP_S - self.links * PACKET_S) / (2 * self.links)


@dataclass(frozen=True)
class Done:
    """Seconds at which the senders know that their messages have arrived, and CPU seconds of the simulator."""

    ends_s: tuple[float, ...]
    cpu_s: float


def in_htsim(work: Work, folder: Path, program: str, scratch: Path) -> Done:
    """Run ``program`` of ``folder``. ``RunFailedError`` if it fails, or a message does not end, in all tries.

    The clock is part of its hashes: it may abort in one second and not in the next.
    """
    for _ in range(TRIES):
        done, doubts = _run(work, folder, program, scratch)
        if not doubts:
            return done
        time.sleep(1.0)
    raise RunFailedError(f"{program}: {doubts}")


def _run(work: Work, folder: Path, program: str, scratch: Path) -> tuple[Done, str]:
    """Run it once; what came of it, and what is wrong with that."""
    matrix, printed = scratch / "connections", scratch / "printed"
    rows = [f"{a}->{b} id {n} start 0 size {work.packets * PAYLOAD}" for n, (a, b) in enumerate(work.pairs, 1)]
    matrix.write_text("\n".join([f"Nodes {work.hosts}", f"Connections {len(rows)}", *rows]) + "\n", "utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with printed.open("w", encoding="utf-8") as output:
        command = [str(folder / program), *_options(work, matrix, scratch / "log")]
        ended = subprocess.run(command, stdout=output, stderr=subprocess.DEVNULL, check=False)
    cpu_s = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    ends = tuple(float(found) * 1e-6 for found in _FLOW_ENDS.findall(printed.read_text("utf-8")))
    whole = ended.returncode == 0 and len(ends) == len(work.pairs)
    doubts = "" if whole else f"status {ended.returncode}, {len(ends)} of {len(work.pairs)} messages ended"
    return Done(ends, cpu_s), doubts


def _options(work: Work, matrix: Path, log: Path) -> Iterator[str]:
    end_us = 1e6 * (PACKET_S * work.packets * 20 * len(work.pairs) / len({target for _, target in work.pairs}) + 1e-3)
    options: Mapping[str, Sequence[object]] = {
        "nodes": [work.hosts],
        "tm": [matrix],
        "strat": ["ecmp_host"],
        "paths": [128],
        "mtu": [PAYLOAD],
        "linkspeed": [LINK_MBPS],
        "q": [1000],
        "pfc_thresholds": [RESUME_PACKETS, PAUSE_PACKETS],
        "hop_latency": [1e6 * work.delay_s],
        "end": [int(end_us)],
        "o": [log],
    }
    for name, values in options.items():
        yield f"-{name}"
        yield from map(str, values)


def in_ours(work: Work, transport: str, scratch: Path) -> Done:
    """Simulate the same here; each flow on the path of a hash of its own."""
    half = work.radix // 2
    shape = {"kind": "clos3", "pods": work.radix, "hosts": work.hosts, "tors_per_pod": half, "cores": half}
    experiment = experiment_on(scratch, _model(transport, work), {**shape, "aggregations_per_pod": half}, PAYLOAD_GBPS)
    traffic = Traffic(experiment)
    ways = []
    for number, (source, target) in enumerate(work.pairs):
        flow = Flow(f"f{number}", "a", f"h{source}n0p0", f"h{target}n0p0", 0.0, 20_000 + number, 5_000)
        ways.append(ecmp_path(experiment.fabric, flow, 1))
    begin = time.process_time()
    for way in ways:
        traffic.send(way, work.packets * PAYLOAD)
    traffic.run()
    cpu_s = time.process_time() - begin
    back_s = work.links * work.delay_s
    return Done(tuple(end + back_s for end in traffic.ended.values()), cpu_s)


def _model(transport: str, work: Work) -> NetworkModel:
    """Its parameters: fixed thresholds of pauses, and HPCC's increase of a packet."""
    packet = PAYLOAD + HEADER
    buffers = Buffers(1e9, xoff=float(PAUSE_PACKETS * packet), xon=float(RESUME_PACKETS * packet))
    model = network_model(transport, mtu=PAYLOAD, buffers=buffers, delays=Delays(work.delay_s))
    if transport == "hpcc":
        window = PAYLOAD_GBPS * 1e9 / 8 * ROUND_TRIP_S
        model = replace(model, parameters={**model.parameters, "additive": PAYLOAD / window})
    return model
