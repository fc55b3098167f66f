"""The messages between an engine and its workers, typed: commands to a worker and events from it. Pure.

On the wire a message is a JSON object on a line of its own, with the ``host`` it is for or from, its name under
``op`` (commands) or ``event`` (events) and its fields beside that: one worker process may serve several hosts. The
flow engine, which has no pipe, passes the same values.
Frozen dataclasses without slots where a message is rare: every worker defines them all when it starts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar

from topologies.dataclass_json import encode, rebuild
from workloads.iteration.byte_marks import ByteMarks
from workloads.iteration.job_plan import Address, JobPlan
from workloads.iteration.pcie_semaphore import PciePlace
from workloads.iteration.time_shift import TimeShift

# Commands to a worker


@dataclass(frozen=True)
class SetUpJob:
    """Set a job up and listen for its flows -> :class:`Listening`."""

    plan: JobPlan


@dataclass(frozen=True)
class JobCommand:
    """Something to do with a whole job."""

    job: str


class ConnectJob(JobCommand):
    """Open its outgoing flows -> :class:`Connected` when those and the incoming ones are open."""


@dataclass(frozen=True)
class StartJob(JobCommand):
    """Begin iterating at ``at`` on the monotonic clock."""

    at: float


@dataclass(frozen=True)
class ShiftJob(JobCommand):
    """Keep its iterations at a phase of a period; None: let them begin when they can."""

    time_shift: TimeShift | None


class HaltJob(JobCommand):
    """Send and report nothing more for it."""


@dataclass(frozen=True)
class CloseJob(JobCommand):
    """Close its connections -> :class:`Closed`. ``reset``: at once, what is unsent is dropped, ports are free."""

    reset: bool = False


@dataclass(frozen=True)
class FlowsCommand:
    """Something to do with some flows."""

    flows: tuple[str, ...]


@dataclass(frozen=True)
class HoldFlows(FlowsCommand):
    """Send nothing more on them -> :class:`Held` for each, once nothing of it is in flight.

    ``cut_off``: because failures leave no way for them, not because their path changes.
    """

    cut_off: bool = False


@dataclass(frozen=True)
class ResumeFlows(FlowsCommand):
    """Go on with flows that are held for the same reason."""

    cut_off: bool = False


@dataclass(frozen=True, slots=True)
class ShapeFlows:
    """Mark (``IP_TOS``) whole jobs and single flows, at both ends, and pace flows at the sender -> :class:`Shaped`.

    ``caused_at`` is when the reason arose, on the monotonic clock; ``rates`` are bytes per second, 0 to hold a
    flow, None for no limit.
    """

    caused_at: float
    job_tos: Mapping[str, int] = field(default_factory=dict)
    flow_tos: Mapping[str, int] = field(default_factory=dict)
    rates: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class ExpectFlows:
    """Be ready for flows from another source port -> :class:`Expecting`, and :class:`Accepted` once each is open."""

    flows: Mapping[str, Address]


@dataclass(frozen=True)
class ReconnectFlows:
    """Open held flows again from another source port (flow -> port) -> :class:`Reconnected` for each."""

    flows: Mapping[str, int]


@dataclass(frozen=True)
class MarkByBytes:
    """New marks for flows whose level counts the bytes of a message; None: a fixed mark."""

    flows: Mapping[str, ByteMarks | None]


@dataclass(frozen=True)
class AssignPcieTurns:
    """PCIe link and rank of flows: while one of a smaller rank sends over a link, the others wait.

    Flows that are not named wait for no other flow.
    """

    flows: Mapping[str, PciePlace]


@dataclass(frozen=True)
class Quit:
    """End, for all hosts."""


HostCommand = (
    SetUpJob
    | ConnectJob
    | StartJob
    | ShiftJob
    | HaltJob
    | CloseJob
    | HoldFlows
    | ResumeFlows
    | ShapeFlows
    | ExpectFlows
    | ReconnectFlows
    | MarkByBytes
    | AssignPcieTurns
)
"""Commands that concern one host."""
Command = HostCommand | Quit

# Events from a worker


@dataclass(frozen=True)
class Ready:
    """The worker accepts commands."""


@dataclass(frozen=True)
class JobAnswer:
    """A job has reached the state that a command requested."""

    job: str


class Listening(JobAnswer):
    """It accepts connections."""


class Connected(JobAnswer):
    """All its connections, out and in, are open."""


class Halted(JobAnswer):
    """It sends nothing more: its peers may close their connections."""


@dataclass(frozen=True)
class Closed(JobAnswer):
    """Its connections are closed; ``retransmits`` segments were sent again."""

    retransmits: int


@dataclass(frozen=True)
class FlowAnswer:
    """A flow has reached the state that a command requested."""

    flow: str


class Held(FlowAnswer):
    """Every byte of it is acknowledged, and no more is sent."""


class Expecting(FlowAnswer):
    """It may come from its other source port."""


class Accepted(FlowAnswer):
    """It has come from its other source port."""


class Reconnected(FlowAnswer):
    """It is open from its other source port."""


@dataclass(frozen=True)
class Failed:
    """``flow`` of ``job`` broke, or could not be opened."""

    job: str
    flow: str
    why: str


@dataclass(frozen=True, slots=True)
class Shaped:
    """A :class:`ShapeFlows` caused at ``caused_at`` was applied ``at`` this time of the monotonic clock."""

    caused_at: float
    at: float


@dataclass(frozen=True)
class Late:
    """The worker was not served from ``start`` to ``end``, on the monotonic clock; one of its hosts says so for all."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class PhaseTimes:
    """One phase on one host, in seconds of the machine's clock; ``compute`` per GPU.

    ``arrivals``: when each message that comes in had arrived whole, in the order of the plan; empty for real programs.
    ``number``: its place in the job's phases, -1 where all of them are on this host in order.
    """

    start: float
    ready: float
    communication_end: float
    end: float
    compute: tuple[float, ...]
    arrivals: tuple[float, ...] = ()
    number: int = -1


@dataclass(frozen=True, slots=True)
class IterationEnded:
    """An iteration on this host: how ``late`` a timer was at most, and seconds ``waited`` for its phase or its GPUs."""

    job: str
    iteration: int
    phases: tuple[PhaseTimes, ...]
    late: float
    waited: float


StepEdge = Literal["begin", "end"]


@dataclass(frozen=True, slots=True)
class HostStep:
    """The communication of a phase begins or ends on this host, where the plan asks for that."""

    job: str
    what: StepEdge
    iteration: int
    phase: int
    at: float


Answer = Ready | Listening | Connected | Halted | Closed | Held | Expecting | Accepted | Reconnected
"""Events that an engine waits for, host by host."""
Notice = Shaped | Late | IterationEnded | HostStep
"""Events that no engine waits for; they are frequent."""
Event = Answer | Notice | Failed

Tell = Callable[[Event], None]

# The wire

COMMANDS: Final[Mapping[str, type[Command]]] = {
    "job": SetUpJob,
    "connect": ConnectJob,
    "start": StartJob,
    "shift": ShiftJob,
    "halt": HaltJob,
    "close": CloseJob,
    "hold": HoldFlows,
    "resume": ResumeFlows,
    "shape": ShapeFlows,
    "expect": ExpectFlows,
    "reconnect": ReconnectFlows,
    "byte-marks": MarkByBytes,
    "pcie-turns": AssignPcieTurns,
    "quit": Quit,
}
EVENTS: Final[Mapping[str, type[Event]]] = {
    "ready": Ready,
    "listening": Listening,
    "connected": Connected,
    "halted": Halted,
    "closed": Closed,
    "held": Held,
    "expecting": Expecting,
    "accepted": Accepted,
    "reconnected": Reconnected,
    "failed": Failed,
    "shaped": Shaped,
    "late": Late,
    "iteration": IterationEnded,
    "step": HostStep,
}
_NAMES: Final[Mapping[type, str]] = {kind: name for table in (COMMANDS, EVENTS) for name, kind in table.items()}

M = TypeVar("M", Command, Event)


def event_name(kind: type[Event]) -> str:
    """The name of events of ``kind``."""
    return _NAMES[kind]


def encode_command(host: str, command: Command) -> bytes:
    """Return ``command`` to the worker of ``host`` as a line."""
    return _encode("op", host, command)


def encode_event(host: str, event: Event) -> bytes:
    """Return ``event`` on ``host`` as a line."""
    return _encode("event", host, event)


def decode_command(line: bytes) -> tuple[str, Command]:
    """Return the host and the command of a ``line``; ``ValueError`` if it is none."""
    return _decode("op", COMMANDS, line)


def decode_event(line: bytes) -> tuple[str, Event]:
    """Return the host and the event of a ``line``; ``ValueError`` if it is none."""
    return _decode("event", EVENTS, line)


def _encode(key: str, host: str, message: object) -> bytes:
    data = {"host": host, key: _NAMES[type(message)], **encode(message)}
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"


def _decode(key: str, kinds: Mapping[str, type[M]], line: bytes) -> tuple[str, M]:
    data: dict[str, Any] = json.loads(line)
    host, name = data.pop("host", None), data.pop(key, None)
    if name not in kinds:
        raise ValueError(f"unknown {key} {name!r}, expected one of {', '.join(kinds)}")
    if not isinstance(host, str):
        raise ValueError(f"{key} '{name}': host {host!r}, expected the name of a host")
    try:
        return host, rebuild(kinds[name], data)
    except TypeError as error:
        raise ValueError(f"{key} '{name}': {error}") from error
