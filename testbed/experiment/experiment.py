"""An experiment: a resolved scenario, ready for an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from testbed.experiment.failures import Failure, Recovery
from testbed.experiment.network_model import NetworkModel
from testbed.experiment.scheduler_choice import SchedulerChoice
from topologies.built_part import Build
from topologies.datapath import Datapath
from topologies.fabric import Fabric
from topologies.network.congestion import Congestion
from topologies.network.load_balancing import LoadBalancing
from topologies.shaping import segment_size
from workloads.build import JobSpec
from workloads.job import Job

Sharing = Literal["max-min", "proportional"]
"""How flows of one level share a link in the flow engine: max-min fair; or proportionally fair, as fixed windows do in
the long run."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How the emulation is shrunk: link rates and messages / ``bandwidth``; pauses and messages x ``time``."""

    bandwidth: float
    time: float
    mtu: int = 9000

    def rate(self, bits_per_second: float) -> float:
        """Emulated rate in bit/s of a link of the scenario."""
        return bits_per_second / self.bandwidth

    def size(self, size: float) -> float:
        """Emulated bytes of a message of the scenario."""
        return size / self.bandwidth * self.time

    @property
    def packet_bits(self) -> float:
        """Payload bits of a full packet."""
        return 8.0 * segment_size(self.mtu)

    def unscale_size(self, size: float) -> float:
        """Bytes in the scenario's units of ``size`` emulated bytes."""
        return size * self.bandwidth / self.time


UNSCALED: Final = Scale(1.0, 1.0)
"""Times and sizes as they are."""


@dataclass(frozen=True, slots=True)
class Measure:
    """How long to measure: ``iterations`` per job after ``warmup``, in at most ``time_limit_s`` undilated seconds.

    ``discard_disturbed``: a disturbance of limited time only discards the iterations it touches.
    """

    iterations: int
    warmup: int
    time_limit_s: float
    discard_disturbed: bool = False


@dataclass(frozen=True, slots=True)
class Submission:
    """A job that asks a cluster manager for ``spec.gpus`` GPUs at ``spec.start_s``.

    The rest is for parts of managers that ask: its virtual cluster, the bounds of an elastic job, whether it is
    content with what is idle, its priority inside the virtual cluster, and the type of its GPUs.
    """

    spec: JobSpec
    virtual_cluster: str = ""
    min_gpus: int | None = None
    max_gpus: int | None = None
    opportunistic: bool = False
    priority: int = 0
    gpu_type: str = ""

    @property
    def gpus(self) -> int:
        """GPUs that it asks for."""
        return self.spec.gpus or 0


@dataclass(frozen=True, slots=True)
class JobFailures:
    """Jobs fail and are tried again up to ``retries`` times, drawn by the run's seed.

    :mod:`workloads.traces.job_failures` has the causes.

    Policies against it: ``prerun`` of the first iteration, where user errors show; ``blacklist``: what fails the same
    way is not tried again; ``early_stop_at``: a share of its iterations at which a job that would pass is ended.
    """

    retries: int = 4
    prerun: bool = False
    blacklist: bool = False
    early_stop_at: float | None = None


@dataclass(frozen=True)
class Managed:
    """Jobs that a cluster manager places while the run goes on, and the manager's parts by name.

    ``options``: plug-in point -> options of the part there. ``job_failures``: None where every job passes at once.
    """

    submissions: tuple[Submission, ...]
    queue: str
    policy: str
    placer: str
    capacity: str
    options: Mapping[str, Mapping[str, object]]
    job_failures: JobFailures | None = None


@dataclass(frozen=True)
class Experiment:
    """Everything an engine needs for one scheduler's run; pure value.

    Either ``jobs`` stay on their GPUs from their arrival to their end, or there are none and those of ``managed``
    are placed as they come. ``datapath`` is what forwards the packets of an emulation, ``sharing`` how flows of one
    level share a link in the flow engine. ``build`` is what of the fabric an emulation builds. ``network`` is that of a
    simulation; None elsewhere. ``load_balancing``: how packets take paths in any engine that has it.
    ``congestion``: the congestion control of an emulation; None for windows of one size.
    """

    name: str
    fabric: Fabric
    jobs: tuple[Job, ...]
    scheduler: SchedulerChoice
    measure: Measure
    scale: Scale
    levels: int
    seed: int
    failures: tuple[Failure, ...] = ()
    recovery: Recovery = field(default_factory=Recovery)
    managed: Managed | None = None
    datapath: Datapath = "userspace"
    sharing: Sharing = "max-min"
    build: Build = "used"
    network: NetworkModel | None = None
    load_balancing: LoadBalancing = "hash"
    flowlet_gap_s: float = NetworkModel.flowlet_gap_s
    congestion: Congestion | None = None

    @property
    def spreads(self) -> bool:
        """Whether packets of a flow take other paths than the decided one."""
        balancing = self.load_balancing if self.network is None else self.network.load_balancing
        return balancing != "hash"

    @property
    def loses_packets(self) -> bool:
        """Whether some cable drops packets at random."""
        return any(failure.loss > 0 for failure in self.failures)

    @property
    def loses_packets_by_design(self) -> bool:
        """Whether packets are lost because the scenario says so: parts fail, or switches drop them."""
        return bool(self.failures) or (self.congestion is not None and self.congestion.lossy)

    @property
    def at_line_rate(self) -> bool:
        """Whether its network has packets that are not those of an emulation."""
        return self.network is not None and not self.network.as_emulated

    @property
    def mtu(self) -> int:
        """Bytes of the largest packet: of the IP packets of an emulation, or of the payload of packets at line rate."""
        return self.scale.mtu if self.network is None or self.network.as_emulated else self.network.mtu

    @property
    def jobs_come_later(self) -> bool:
        """Whether jobs come, or programs open connections, while others run."""
        return self.managed is not None or any(job.start_s > 0 or job.external is not None for job in self.jobs)
