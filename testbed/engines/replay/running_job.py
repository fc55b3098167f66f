"""A job of a trace on its GPUs: its request, its traffic, its progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from controller.decision import Step
from testbed.engines.replay.traffic import LINK_CLASSES, Traffic
from testbed.fluid.fluids import Contention
from testbed.fluid.maxmin import Floats
from testbed.fluid.steady_state import State
from workloads.job import Job
from workloads.managers.account import Account
from workloads.periodic_job import PeriodicJob

COLUMNS: Final = (
    "jobs",
    "allocated",
    "busy",
    "sharing_jobs",
    "sharing_gpus",
    *(f"load {kind}" for kind in LINK_CLASSES),
    *(f"intensity {kind}" for kind in LINK_CLASSES),
    "sharing_pcie_jobs",
)
"""Of a series: running jobs; GPUs allocated (shared ones once) and computing; jobs that share a link or GPUs with
another, and their GPUs; links in use, added up by class, and the same weighted by the intensity (FLOP/s) of whose bytes
they carry; jobs that share the link from a PCIe switch to its NIC with another."""

_ROUNDING: Final = 1e-9
"""Share of a job that is nothing but rounding."""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """A job of a trace: ``duration_s`` is what its ``attempts`` take alone, ``model`` a name of the catalogue.

    All attempts but the last fail, each after an equal part of ``duration_s``: traces record their sum. ``status``:
    how the last one ends (:data:`workloads.traces.job_failures.Status`).
    """

    name: str
    submit_s: float
    duration_s: float
    gpus: int
    model: str
    virtual_cluster: str = ""
    user: str = ""
    min_gpus: int | None = None
    max_gpus: int | None = None
    opportunistic: bool = False
    attempts: int = 1
    status: str = "passed"

    @property
    def attempt_s(self) -> float:
        """Seconds of one attempt, alone."""
        return self.duration_s / self.attempts


Builder = Callable[[ReplayRequest, tuple[str, ...]], Job]
"""Makes the job of a request on its GPUs."""


@dataclass(eq=False)
class ReplayedJob:
    """A job on its GPUs, with ``left`` iterations to run there, at ``rate`` per second.

    Until ``paused_until_s`` it holds its GPUs and computes nothing: it restarts, or moves.
    ``full_speed_s``: seconds of an iteration alone there, were its GPUs of speed 1; 0: they are.
    ``pack``: a number of the GPUs that it shares, -1 for none.
    ``shares``: whether it contends over links or GPUs, ``shares_pcie``: over the link of a NIC to its PCIe switch.
    ``above``: by name, those that may slow it directly, and ``below``, whom it may slow, or could once; ``sign``
    changes with those above and its own links, and ``known_rates`` are those that it had beside others.
    ``state`` and ``contention`` are kept where every iteration is stepped through: where in its iteration it stands,
    and the group as arrays, as its first job was stepped last.
    """

    request: ReplayRequest
    traffic: Traffic
    fluid: PeriodicJob[int]
    account: Account
    left: float
    paused_until_s: float = 0.0
    rate: float = 0.0
    version: int = 0
    pack: int = -1
    full_speed_s: float = 0.0
    shares: bool = False
    shares_pcie: bool = False
    above: dict[str, ReplayedJob] = field(default_factory=dict, repr=False)
    below: set[str] = field(default_factory=set, repr=False)
    sign: int = 0
    known_rates: dict[frozenset[int], float] = field(default_factory=dict, repr=False)
    state: State | None = None
    step: Step | None = field(default=None, repr=False)
    contention: Contention | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self._whole = self.left

    @property
    def name(self) -> str:
        """The job's name."""
        return self.request.name

    @property
    def gpus(self) -> int:
        """GPUs that it holds."""
        return len(self.traffic.job.gpus)

    @property
    def remaining_s(self) -> float:
        """Seconds that are left of it alone, on as many GPUs of speed 1 as it asked for, attempts to come included."""
        to_come_s = (self.request.attempts - self.account.attempts) * self.request.attempt_s
        iteration_s = self.full_speed_s or self.traffic.alone_s
        return self.left * iteration_s * self.gpus / self.request.gpus + to_come_s

    @property
    def done(self) -> bool:
        """Whether nothing is left but rounding."""
        return self.left <= _ROUNDING * self.request.duration_s / self.traffic.alone_s

    @property
    def phase(self) -> float:
        """How far it is into an iteration, 0 to 1: by what it has done, or by the time shift that it keeps."""
        began = self.fluid.offset_s / self.fluid.period_s
        return began if self.traffic.keeps_shift else (began + self._whole - self.left) % 1.0

    def advance(self, then_s: float, rate: float) -> None:
        """Let time pass at ``rate`` iterations per second."""
        iterations = rate * self.account.advance(then_s)
        self.left -= iterations
        self.account.busy_gpu_s += iterations * self.traffic.job.compute_s * self.gpus

    def moved_to(
        self, traffic: Traffic, fluid: PeriodicJob[int], paused_until_s: float, full_speed_s: float = 0.0
    ) -> ReplayedJob:
        """Return the job on other GPUs. What is left is divided over them: weak scaling."""
        left = self.left * self.gpus / len(traffic.job.gpus)
        return ReplayedJob(self.request, traffic, fluid, self.account, left, paused_until_s, full_speed_s=full_speed_s)

    def columns(self, rate: float) -> Floats:
        """What the job adds to :data:`COLUMNS` at ``rate`` iterations per second; GPUs that jobs share are no sum."""
        gpus, traffic = self.fluid.gpus, self.traffic
        shares = float(self.shares)
        loads = [rate * seconds for seconds in traffic.by_class]
        intensity = traffic.job.flops / self.fluid.communication_s if self.fluid.loads else 0.0
        busy = gpus * rate * traffic.job.compute_s
        weighted = (intensity * load for load in loads)
        return np.array([1.0, 0.0, busy, shares, shares * gpus, *loads, *weighted, float(self.shares_pcie)])


def contention_of(running: Sequence[ReplayedJob]) -> Contention:
    """A group as arrays: those that its first job keeps, unless the fluid of a job has changed since."""
    fluids = tuple(each.fluid for each in running)
    kept = running[0].contention
    if kept is None or kept.jobs != fluids:
        kept = running[0].contention = Contention.of(fluids)
    return kept
