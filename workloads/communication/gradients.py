"""What a job does to its own gradient exchange: fewer bytes, less often, earlier. All-to-alls stay as they are.

Only bytes and idle time are modelled. What compression, fewer bits and rarer exchange cost in accuracy is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from workloads.models.model import PhaseTemplate

CATALOGUE_BITS: Final = 16
"""Bits of a gradient element in the catalogue."""
BACKWARD_SHARE: Final = 2 / 3
"""Of the compute of an iteration: the backward pass costs twice the forward pass."""


@dataclass(frozen=True, slots=True)
class Gradients:
    """Options of a job's gradient exchange.

    ``bits`` per element (quantisation), ``compression``: share of the elements that is sent (sparsification),
    ``every``: iterations between exchanges (accumulation, local steps). ``buckets``: the gradient leaves in so many
    equal parts as the backward pass makes them; ``partitions``: tensors are cut into so many equal parts, and what
    the next forward pass needs first goes first, so that communication may use that pass too (tensor partitioning,
    as in ByteScheduler). None for either: the overlap of the model. ``background``: the exchange begins with the
    backward pass and goes on beside its all-to-alls, which it slows (Lina, ATC 2023); without it, after them.
    ``ralp``: parameter servers compute the dense layers of a convolutional network
    (:mod:`workloads.communication.ralp`).
    """

    bits: float = CATALOGUE_BITS
    compression: float = 1.0
    every: int = 1
    buckets: int | None = None
    partitions: int | None = None
    background: bool = False
    ralp: bool = False

    def problem(self) -> str | None:
        """What is wrong with the options in one line; None if nothing is."""
        rules = (
            (0 < self.bits <= 32, f"gradients.bits must lie above 0 and at most at 32, not {self.bits:g}"),
            (
                0 < self.compression <= 1,
                f"gradients.compression must lie above 0 and at most at 1, not {self.compression:g}",
            ),
            (self.every >= 1, f"gradients.every must be at least 1, not {self.every}"),
            (self.buckets is None or self.buckets >= 1, f"gradients.buckets must be at least 1, not {self.buckets}"),
            (
                self.partitions is None or self.partitions >= 1,
                f"gradients.partitions must be at least 1, not {self.partitions}",
            ),
            (self.buckets is None or self.partitions is None, "gradients has buckets and partitions, expected one"),
        )
        return next((text for holds, text in rules if not holds), None)

    @property
    def overlap(self) -> float | None:
        """Share of the compute that the exchange may overlap; None for the model's.

        It starts with the first of n buckets, of the backward pass (two thirds of the compute); with n partitions
        all but one part of the exchange may lie beside compute, forward pass included.
        """
        if self.buckets is not None:
            return BACKWARD_SHARE * (1 - 1 / self.buckets)
        return None if self.partitions is None else 1 - 1 / self.partitions


AS_IN_THE_CATALOGUE: Final = Gradients()


def exchanged(templates: Sequence[PhaseTemplate], options: Gradients) -> tuple[PhaseTemplate, ...]:
    """Return the phases of ``options.every`` iterations with ``options`` applied; shares are of all of them."""
    factor = options.bits / CATALOGUE_BITS * options.compression
    found: list[PhaseTemplate] = []
    for turn in range(options.every):
        last = turn == options.every - 1
        turned: list[PhaseTemplate] = []
        for phase in templates:
            mine = replace(phase, share=phase.share / options.every)
            if phase.collective != "alltoall":
                overlap = phase.overlap if options.overlap is None else options.overlap
                mine = replace(mine, bytes=phase.bytes * factor if last else 0.0, overlap=overlap)
            turned.append(mine)
        found += _beside_all_to_alls(turned) if options.background and last else turned
    return tuple(found)


def _beside_all_to_alls(phases: Sequence[PhaseTemplate]) -> tuple[PhaseTemplate, ...]:
    """The exchange moved before the second half of the all-to-alls, those of the backward pass; its compute stays."""
    own = [place for place, phase in enumerate(phases) if phase.collective == "alltoall"]
    middle = own[len(own) // 2] if own else len(phases)
    sent = [
        replace(phase, share=0.0, overlap=0.0, background=True)
        for phase in phases
        if phase.collective != "alltoall" and phase.bytes > 0
    ]
    rest = [phase if phase.collective == "alltoall" else replace(phase, bytes=0.0) for phase in phases]
    return (*rest[:middle], *sent, *rest[middle:])
