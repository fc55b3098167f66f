"""What a model is to the network: compute and bytes of one training iteration on one GPU.

All sizes in bytes, work in FLOP, times in seconds on the GPU named in :data:`A100_PEAK`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

A100_PEAK: Final = 312e12
"""FLOP/s of an A100 in bf16 on its tensor cores, dense (NVIDIA A100 data sheet)."""


@dataclass(frozen=True, slots=True)
class PhaseTemplate:
    """A stretch of an iteration: ``share`` of its compute, then ``collective`` over ``bytes`` per GPU.

    ``bytes`` is S of :mod:`workloads.communication.collectives`. ``overlap`` and ``background`` as in
    :class:`workloads.job.Phase`. ``returning``: its messages go in reverse, from the experts that tokens were
    sent to. ``back_bytes``: bytes per GPU that come back from experts beside those that go to them.
    """

    share: float
    collective: str
    bytes: float
    overlap: float
    background: bool = False
    returning: bool = False
    back_bytes: float = 0.0


@dataclass(frozen=True, slots=True)
class Model:
    """One model at a stated batch size and parallel layout.

    ``parameters`` of the whole model; ``flops_per_gpu`` of one iteration, forward and backward;
    ``gradient_bytes`` is what the gradient allreduce exchanges per model replica;
    ``achieved_flops`` the FLOP/s assumed on one A100; ``batch`` the samples per GPU and iteration.
    ``expert_share`` of the compute is that of experts; each all-to-all phase stands for those of ``expert_layers``
    layers. ``skew``: parameters of the largest tensor whose gradient is
    exchanged over those of all such tensors (Tiresias, section 3.3).
    """

    name: str
    title: str
    parameters: float
    flops_per_gpu: float
    gradient_bytes: float
    achieved_flops: float
    batch: float
    layout: str
    phases: tuple[PhaseTemplate, ...]
    sources: tuple[str, ...]
    expert_share: float = 0.0
    skew: float = 0.0
    expert_layers: int = 1

    def __post_init__(self) -> None:
        total = sum(phase.share for phase in self.phases)
        if abs(total - 1.0) > 1e-9:
            raise ValueError(f"model {self.name}: its phases hold {total:g} of the compute, not 1")

    @property
    def compute_s(self) -> float:
        """Compute of one iteration on one GPU."""
        return self.flops_per_gpu / self.achieved_flops

    @property
    def communication_bytes(self) -> float:
        """S per GPU, all collectives of an iteration added up."""
        return sum(phase.bytes for phase in self.phases)

    @property
    def overlap(self) -> float:
        """Overlap of the gradient exchange, the last phase."""
        return self.phases[-1].overlap
