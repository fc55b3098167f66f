"""Jobs as values: what an iteration computes, what it sends, and which byte waits for which.

Times are in seconds, sizes in bytes, work in FLOP, all undilated and unscaled: an engine that
scales bandwidth or dilates time does so when it carries a job out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Flow:
    """One TCP connection between two NIC ports, open for the life of its job.

    ``bytes`` is its payload per iteration, all collectives of the iteration added up.
    ``source_port`` and ``target_port`` are TCP port numbers, fixed by the seed.
    """

    id: str
    job: str
    source: str
    target: str
    bytes: float
    source_port: int
    target_port: int


@dataclass(frozen=True, slots=True)
class Transfer:
    """A message on a flow, and the message it depends on.

    The byte at offset ``p >= lead`` may leave only after the byte at offset ``p - lead`` of this
    phase's message on flow ``after`` has arrived at the sender; the first ``lead`` bytes are the
    sender's own. With ``after`` None the whole message is the sender's own. A ring step is
    exactly this: ``lead`` is the chunk, ``after`` the flow from the predecessor.
    """

    flow: str
    bytes: float
    after: str | None = None
    lead: float = 0.0


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of compute and the collective that goes with it.

    Communication may start when ``1 - overlap`` of the compute is done; the phase ends on a host
    when its GPUs have computed and its messages are sent and received. ``overlap`` 0 is serial,
    1 lets both start together. Communication in the ``background`` goes on beside later phases: the phase ends
    without it, the iteration does not. ``inside`` are (link, bytes) of what the phase moves over links inside
    hosts, where the fabric counts those; it moves in parallel with the transfers.
    """

    compute_s: float
    overlap: float
    collective: str
    transfers: tuple[Transfer, ...] = ()
    inside: tuple[tuple[str, float], ...] = ()
    background: bool = False

    @property
    def communicates(self) -> bool:
        """Whether the phase has communication that takes time."""
        return bool(self.transfers or self.inside)


@dataclass(frozen=True, slots=True)
class Straggler:
    """One GPU (node name) whose compute takes ``factor`` times as long."""

    gpu: str
    factor: float


@dataclass(frozen=True)
class Job:
    """A training job placed on GPUs, its iteration expanded into flows and transfers.

    ``flops`` is W_j of Crux section 3.2: the FLOPs of one iteration summed over all GPUs.
    ``jitter`` is the standard deviation of a GPU's compute time relative to its mean.
    """

    name: str
    model: str
    gpus: tuple[str, ...]
    phases: tuple[Phase, ...]
    flows: tuple[Flow, ...]
    flops: float
    iterations: int
    start_s: float = 0.0
    jitter: float = 0.0
    stragglers: tuple[Straggler, ...] = ()
    flow_by_id: Mapping[str, Flow] = field(init=False, repr=False, compare=False, hash=False)

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
        """Compute of one iteration on one GPU, without jitter and stragglers."""
        return sum(phase.compute_s for phase in self.phases)
