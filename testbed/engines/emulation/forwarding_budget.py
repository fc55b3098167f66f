"""Measures what this machine forwards: short emulated runs in which every NIC sends, at a few loads.

Each run lives in namespaces of its own like any other and leaves nothing behind. What counts is what
the switches really sent in a second, and the share of the CPU that the run itself took for it.
"""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from testbed.engines.registry import Engine
from testbed.errors import CannotRunError, RunFailedError
from testbed.experiment.experiment import Experiment, Measure, Scale
from testbed.experiment.scheduler_choice import SchedulerChoice
from testbed.fidelity.interference import MIN_IDLE_CPU
from testbed.machine.budget import BUILT_IN_BUDGETS, Budget, BudgetPoint, Sample, affordable
from testbed.results.record import RunRecord
from topologies.clos import clos
from topologies.datapath import Datapath
from topologies.fabric import Fabric
from topologies.shaping import TCP_IP_HEADER
from workloads.build import JobSpec, build_jobs

MTUS: Final = (9000, 4500, 1500)
FIRST_GUESS: Final = {9000: 1.0, 4500: 1.2, 1500: 1.4}
"""Packet-hops to try first, as multiples of the datapath's built-in budget: smaller packets cost less each."""
PORT_RATE: Final = 100e9
SENDING_S: Final = 2.0
"""At least so long a burst."""
SENDING_S_PER_CHANNEL: Final = 0.5
"""So that a chunk of each channel has at least four full packets at the rates measured."""
RUN_S: Final = 6.0
"""A run has as many bursts as fit, but at least two."""
LIMIT_S: Final = 10.0
RUNS_PER_POINT: Final = 2
LONGEST_S: Final = 330.0
"""No run of a datapath is begun that could end later than this after its first began."""
ONE_RUN_S: Final = 15.0
MAX_OTHERS: Final = 0.15
"""A second in which others took more of the CPU than this says nothing about the run."""
STEADY: Final = 0.85
"""A second counts that forwarded at least this share of the busiest one's."""


@dataclass(frozen=True, slots=True)
class MeasuredFabric:
    """A fabric to measure on: ``hosts`` with ``nics`` each, two hosts to a ToR, ``channels`` to each next NIC port.

    ``one_tor``: all hosts lie under the same ToR.
    """

    hosts: int
    nics: int
    channels: int = 1
    one_tor: bool = False

    @property
    def switches(self) -> int:
        """Switches on every path: the ToR alone, or ToR, aggregation, ToR."""
        return 1 if self.one_tor else 3

    @property
    def ports(self) -> int:
        """NIC ports, all of which send."""
        return self.hosts * self.nics

    @property
    def sending_s(self) -> float:
        """How long a burst lasts, seconds."""
        return max(SENDING_S, SENDING_S_PER_CHANNEL * self.channels)

    def fabric(self) -> Fabric:
        """A Clos in which every NIC has a path of its own to every other ToR."""
        return clos(
            hosts=self.hosts,
            gpus_per_host=self.nics,
            nics_per_host=self.nics,
            tors=1 if self.one_tor else self.hosts // 2,
            aggregations=2 * self.nics,
            port_rate=PORT_RATE,
            fabric_rate=PORT_RATE,
        )


SHAPES: Final = (
    MeasuredFabric(12, 4),
    MeasuredFabric(12, 4, channels=4),
    MeasuredFabric(12, 4, channels=8),
    MeasuredFabric(12, 4, one_tor=True),
    MeasuredFabric(12, 4, channels=8, one_tor=True),
)
"""The channels of figures 19 to 22 and of a job that names none, and four between them. Fewer ports are not measured: a
packet costs as much with eight as with 48, within what two measurements differ."""

Show = Callable[[str, float], None]


def experiment(
    shape: MeasuredFabric, mtu: int, packet_hops_per_s: float, datapath: Datapath = "userspace"
) -> Experiment:
    """One job on all NICs that does nothing but send round a ring, at ``packet_hops_per_s`` in all."""
    fabric = shape.fabric()
    order = [*range(0, shape.hosts, 2), *range(1, shape.hosts, 2)]  # neighbours lie under different ToRs
    share = shape.sending_s * PORT_RATE / 8 * shape.nics
    iterations = max(2, int(RUN_S / shape.sending_s))
    sender = JobSpec(
        name="all",
        model="bert",
        placement=tuple(gpu for host in order for gpu in fabric.hosts[f"h{host}"].gpus),
        compute_s=1e-3,
        communication_bytes=share * shape.hosts / 2 / (shape.hosts - 1),
        overlap=0.0,
        collective="hierarchical",
        iterations=iterations,
        channels=shape.channels,
    )
    rate = packet_hops_per_s / shape.ports / shape.switches * 8 * (mtu - TCP_IP_HEADER)
    return Experiment(
        name=f"forwarding-{shape.ports}-{mtu}",
        fabric=fabric,
        jobs=build_jobs([sender], fabric),
        scheduler=SchedulerChoice("crux", {"priorities": False}),
        measure=Measure(iterations - 1, 0, LIMIT_S),
        scale=Scale(PORT_RATE / rate, 1.0, mtu),
        levels=8,
        seed=1,
        datapath=datapath,
    )


def samples_of(record: RunRecord, made: Experiment) -> list[Sample]:
    """The steady seconds of a run, as far as others left it the CPU."""
    sent: dict[float, float] = defaultdict(float)
    for row in record.links:
        if made.fabric.links[row.link].source in made.fabric.switches:
            sent[row.time_s] += made.scale.size(row.bytes) / (made.scale.mtu - TCP_IP_HEADER)
    seconds: Any = record.environment["cpu"]
    samples = [
        # Rows of links are in the scenario's time, divided by the dilation as here; CPU seconds are in the machine's.
        Sample(sent.get(time_s / made.scale.time, 0.0) / duration_s, 1.0 - idle - stolen - foreign, stolen + foreign)
        for time_s, duration_s, idle, stolen, foreign in (second[:5] for second in seconds)
    ]
    most = max((sample.packet_hops_per_s for sample in samples), default=0.0)
    return [s for s in samples if s.packet_hops_per_s >= STEADY * most > 0.0 and s.others <= MAX_OTHERS]


def measure_budget(
    engine: Engine,
    show: Show,
    datapath: Datapath,
    shapes: Sequence[MeasuredFabric] = SHAPES,
    mtus: Sequence[int] = MTUS,
) -> Budget:
    """Measure every packet size on every shape with ``datapath``, largest packets first, as ``LONGEST_S`` allows.

    ``show`` takes what is done and the share of it that is over. Raises ``CannotRunError`` where another
    emulation runs, or where neighbours took so much CPU that not one point could be measured.
    """
    began, points = time.monotonic(), []
    wanted = [(shape, mtu) for mtu in mtus for shape in shapes]
    with engine.alone():
        for index, (shape, mtu) in enumerate(wanted):
            if time.monotonic() - began > LONGEST_S - RUNS_PER_POINT * ONE_RUN_S:
                break
            what = f"{datapath}, {shape.switches} switches, {shape.channels} channels, MTU {mtu}"
            show(what, index / len(wanted))
            point = _measure_point(engine, datapath, shape, mtu)
            if point is None:
                show(f"{what}: others took too much CPU, left out", (index + 1) / len(wanted))
            else:
                points.append(point)
    if not points:
        raise CannotRunError("others took too much CPU to measure anything: try again when the machine is quiet")
    return Budget(tuple(points), f"measured {time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC")


def _measure_point(engine: Engine, datapath: Datapath, shape: MeasuredFabric, mtu: int) -> BudgetPoint | None:
    """Two loads, the second near what the first says is affordable; None where nothing could be seen."""
    allowed = 1.0 - MIN_IDLE_CPU
    load = BUILT_IN_BUDGETS[datapath].at(mtu, shape.ports, shape.channels, shape.switches) * FIRST_GUESS[mtu]
    runs: list[list[Sample]] = []
    for _ in range(RUNS_PER_POINT):
        found = _run(engine, experiment(shape, mtu, load, datapath))
        runs.append(found)
        load *= min(1.6, max(0.6, allowed / max(sample.busy for sample in found))) if found else 0.7
    others = [sample.others for run in runs for sample in run]
    if not others:
        return None
    fits, taken = round(affordable(runs, allowed), 1), round(sum(others) / len(others), 3)
    return BudgetPoint(mtu, shape.ports, fits, taken, shape.channels, shape.switches)


def _run(engine: Engine, made: Experiment) -> list[Sample]:
    """Samples of one run; none if it could not be carried at all."""
    with tempfile.TemporaryDirectory(prefix="testbed-measure-") as folder:
        try:
            record = engine.run(made, Path(folder), lambda message: None)
        except RunFailedError:
            return []
    return samples_of(record, made)
