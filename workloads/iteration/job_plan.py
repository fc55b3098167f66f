"""The plan of a job on one host, which its worker carries out: what it computes, sends and receives. Pure.

Sizes are emulated bytes, times seconds as run; compute alone is undilated, beside ``time_scale``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from workloads.iteration.byte_marks import ByteMarks
from workloads.iteration.byte_windows import ByteWindows
from workloads.job import Straggler

Address = tuple[str, int, str, int]
"""Source address and port, target address and port."""


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """``size`` bytes to send on ``flow``; those past ``lead`` wait for as many that come in on flow ``after``."""

    flow: str
    size: int
    after: str | None = None
    lead: int = 0


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """``size`` bytes to receive on ``flow``."""

    flow: str
    size: int


@dataclass(frozen=True, slots=True)
class RequestPlan:
    """A request that a phase is about: it begins ``at`` seconds as run after the job's start, or later.

    It takes ``compute`` times the compute of the phase, and its messages have ``size`` times their bytes.
    """

    at: float
    compute: float
    size: float


@dataclass(frozen=True, slots=True)
class PhasePlan:
    """A phase on this host: ``compute_s`` and ``overlap`` as in the job's phase, and its messages here.

    ``inside_s`` is what its communication takes inside the host at least. ``background`` communication goes on
    beside later phases: the phase ends without it, the iteration does not. ``detached`` messages are sent one after the
    other on their flows while later phases go on. ``number``: its place in the job's phases, -1 where all of them are
    here in order. ``requests``: by iteration the request that it is about, empty in training.
    """

    compute_s: float
    overlap: float
    out: tuple[OutgoingMessage, ...]
    into: tuple[IncomingMessage, ...]
    inside_s: float = 0.0
    background: bool = False
    detached: bool = False
    number: int = -1
    requests: tuple[RequestPlan, ...] = ()

    def size_in(self, iteration: int, size: int) -> int:
        """Bytes that ``size`` of the plan are in ``iteration``: at least one, if it is any."""
        return max(1, round(size * self.requests[iteration].size)) if self.requests and size else size

    def in_iteration(self, iteration: int) -> PhasePlan:
        """The phase with the sizes of its messages in ``iteration``."""
        if not self.requests:
            return self
        out = (
            replace(each, size=self.size_in(iteration, each.size), lead=self._lead(iteration, each))
            for each in self.out
        )
        into = (replace(each, size=self.size_in(iteration, each.size)) for each in self.into)
        return replace(self, out=tuple(out), into=tuple(into))

    def _lead(self, iteration: int, message: OutgoingMessage) -> int:
        return min(self.size_in(iteration, message.lead), self.size_in(iteration, message.size))


@dataclass(frozen=True, slots=True)
class PlannedConnection:
    """The TCP connection of ``flow``; ``peer`` is the host that sends."""

    flow: str
    source: str
    source_port: int
    target: str
    target_port: int
    peer: str

    @property
    def address(self) -> Address:
        """What distinguishes the connection from every other."""
        return self.source, self.source_port, self.target, self.target_port


@dataclass(frozen=True, slots=True)
class JobPlan:
    """Job ``name`` on one host. ``draws``: see :class:`~workloads.job.Job`.

    ``window`` bytes at most are in flight on a flow, or ``byte_windows`` where its share of links counts bytes; rings
    forward slices of ``slice_size``. ``departure`` is the time that a full packet takes to leave, ``link_rate`` the
    bytes per second of the slowest first link. Flows begin with the marks ``tos``, or with ``byte_marks`` where their
    level counts bytes. With ``steps`` the worker reports when the communication of a phase begins and ends.
    ``first_iteration`` is the number of the first one: not 0 for a job that starts again.
    """

    name: str
    seed: int
    iterations: int
    time_scale: float
    jitter: float
    stragglers: tuple[Straggler, ...]
    gpus: tuple[str, ...]
    phases: tuple[PhasePlan, ...]
    outgoing: tuple[PlannedConnection, ...]
    incoming: tuple[PlannedConnection, ...]
    window: int
    slice_size: int
    departure: float
    link_rate: float
    tos: Mapping[str, int] = field(default_factory=dict)
    byte_marks: Mapping[str, ByteMarks] = field(default_factory=dict)
    byte_windows: Mapping[str, ByteWindows] = field(default_factory=dict)
    steps: bool = False
    draws: tuple[str, ...] = ()
    first_iteration: int = 0

    def largest_window(self, flow: str) -> int:
        """Bytes that ``flow`` has in flight at most."""
        return max(self.byte_windows[flow].windows) if flow in self.byte_windows else self.window
