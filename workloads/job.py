"""Jobs as values: what an iteration computes, what it sends, and which byte waits for which.

Times are in seconds, sizes in bytes, work in FLOP, all undilated and unscaled: an engine that
scales bandwidth or dilates time does so when it carries a job out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from workloads.external import ExternalCommand
from workloads.serving.served import Served

JOB_NAME: Final = r"^[A-Za-z][A-Za-z0-9_]*(-[A-Za-z0-9_]+)*$"
"""Of the name of a job that comes from a file or a request."""
JOB_NAME_FORM: Final = "a letter (A to Z, a to z), then letters, digits, '_' and single '-'"
"""The same in words."""


@dataclass(frozen=True, slots=True)
class Flow:
    """One TCP connection between two NIC ports, open for the life of its job; several form the channels of a pair."""

    id: str
    """Unique in the run: ``big:ring:h0n0p0>h1n0p0``."""
    job: str
    """Name of its job."""
    source: str
    """Name of the NIC port that sends."""
    target: str
    """Name of the NIC port that receives."""
    bytes: float
    """Payload per iteration, all collectives of the iteration added up."""
    source_port: int
    """TCP source port, fixed by the seed."""
    target_port: int
    """TCP target port, fixed by the seed."""
    two_way: bool = False
    """Whether its connection carries another flow the other way, with which acknowledgements travel.

    Such connections are those of real programs: their ports are the program's own.
    """


@dataclass(frozen=True, slots=True)
class Transfer:
    """A message on a flow, and the message it depends on.

    The byte at offset ``p >= lead`` may leave only after the byte at offset ``p - lead`` of this
    phase's message on flow ``after`` has arrived at the sender; the first ``lead`` bytes are the
    sender's own. With ``after`` None the whole message is the sender's own. A ring step is
    exactly this: ``lead`` is the chunk, ``after`` the flow from the predecessor.
    """

    flow: str
    """Id of the flow that carries it."""
    bytes: float
    """Size of the message."""
    after: str | None = None
    """Id of the flow whose message of this phase it waits for; None for none."""
    lead: float = 0.0
    """Bytes that are the sender's own: byte p waits for byte p - lead of the message on ``after``."""


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of compute and the collective that goes with it.

    Communication may start when ``1 - overlap`` of the compute is done; the phase ends on a host
    when its GPUs have computed and its messages are sent and received. ``overlap`` 0 is serial,
    1 lets both start together. Communication in the ``background`` goes on beside later phases: the phase ends
    without it, the iteration does not. ``inside`` are (link, bytes) of what the phase moves over links inside
    hosts, where the fabric counts those; it moves in parallel with the transfers.

    In a pipeline stages take part in phases of their own: ``members`` compute, the others pass the phase by. What one
    stage sends another is ``detached``: the senders go on, and the receivers wait where a later phase ``awaits`` it.
    """

    compute_s: float
    """Seconds of compute on each GPU."""
    overlap: float
    """0 to 1: communication may start when 1 - overlap of the compute is done."""
    collective: str
    """Its name, such as ``ring`` or ``all-to-all``."""
    transfers: tuple[Transfer, ...] = ()
    """The messages of the collective."""
    inside: tuple[tuple[str, float], ...] = ()
    """(link, bytes) of what moves over links inside hosts, where the fabric counts those."""
    background: bool = False
    """Whether its communication goes on beside later phases."""
    size: float = 0.0
    """S of the collective in bytes: what a GPU hands in."""
    groups: tuple[tuple[int, ...], ...] = ()
    """Places in ``Job.gpus`` of the GPUs of each group that carries out a collective; empty: all GPUs together."""
    members: tuple[int, ...] = ()
    """Places in ``Job.gpus`` of the GPUs that compute in it; empty: all."""
    detached: bool = False
    """Whether its senders go on without waiting, and its receivers wait in later phases."""
    awaits: tuple[int, ...] = ()
    """Places in ``Job.phases`` of detached ones before it, whose messages must be there before it begins."""

    @property
    def communicates(self) -> bool:
        """Whether the phase has communication that takes time."""
        return bool(self.transfers or self.inside)


@dataclass(frozen=True, slots=True)
class Straggler:
    """One GPU (node name) whose compute takes ``factor`` times as long."""

    gpu: str
    """Node name, such as ``h0g3``."""
    factor: float
    """How many times as long its compute takes."""


@dataclass(frozen=True)
class Job:
    """A training job placed on GPUs, its iteration expanded into flows and transfers."""

    name: str
    """As in the scenario; ``name@2`` is its second stretch under a manager."""
    model: str
    """Name of its model."""
    gpus: tuple[str, ...]
    """Node names of its GPUs, in ring order."""
    phases: tuple[Phase, ...]
    """What an iteration computes and sends, in order."""
    flows: tuple[Flow, ...]
    """Its connections."""
    flops: float
    """W_j of Crux section 3.2: FLOPs of an iteration, all GPUs together."""
    iterations: int
    """How many it has."""
    start_s: float = 0.0
    """When it arrives, in seconds since the start of the run."""
    jitter: float = 0.0
    """Standard deviation of a GPU's compute time, relative to its mean."""
    stragglers: tuple[Straggler, ...] = ()
    """GPUs that compute more slowly."""
    draws: tuple[str, ...] = ()
    """What fixes the random draws of each of ``gpus``: its place in the fabric, not its name. Empty: its place here."""
    left_out: tuple[str, ...] = ()
    """What the file that its iteration was read from says and the iteration does not have, a line each."""
    external: ExternalCommand | None = None
    """The real program that is the job; None for a synthetic one. What it computes and sends is a declaration."""
    served: Served | None = None
    """The requests that a serving job answers, a round of them an iteration; None for training."""
    compute_source: str = ""
    """Where the compute times of a large model come from, in words; empty where the scenario gives them."""
    flow_by_id: Mapping[str, Flow] = field(init=False, repr=False, compare=False, hash=False)
    """Flow id -> flow."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "flow_by_id", {flow.id: flow for flow in self.flows})

    @property
    def inside(self) -> dict[str, float]:
        """Bytes of an iteration on each link inside a host that counts."""
        total: dict[str, float] = {}
        for phase in self.phases:
            for link, size in phase.inside:
                total[link] = total.get(link, 0.0) + size
        return total

    @property
    def compute_s(self) -> float:
        """Compute of one iteration on one GPU, without jitter and stragglers; the mean where GPUs differ."""
        return sum(map(self.share_computing, self.phases))

    def share_computing(self, phase: Phase) -> float:
        """Seconds of compute of ``phase``, mean over all GPUs: those that take no part compute nothing."""
        return phase.compute_s * (len(phase.members) / len(self.gpus) if phase.members else 1.0)

    @property
    def staged(self) -> bool:
        """Whether it has phases in which only some of its GPUs take part."""
        return any(phase.members for phase in self.phases)
