"""Experts of a mixture on GPUs, after Lina (Li et al., ATC 2023, section 5): in proportion to popularity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final

from workloads.models.model import Model, PhaseTemplate
from workloads.models.transformers import BACKWARD_AND_FORWARD

PLACEMENTS: Final = ("even", "popular")


@dataclass(frozen=True, slots=True)
class Experts:
    """How the experts of a job are placed on its GPUs, and how many tokens they get.

    ``popularity``: tokens that each expert is expected to get, in any unit; ``routed``: those that it does get, None
    for as expected. ``placement``: ``even`` gives all experts as many GPUs, ``popular`` GPUs in proportion to their
    popularity, where the least popular share one. ``corrected``: the GPUs follow ``routed`` instead, the second phase
    of Lina's inference. ``inference``: iterations are forward passes, without gradients. ``chunk``: bytes of a
    micro-op, into which each layer's all-to-alls and its experts' compute are cut (:func:`pipelined`); None: whole.
    """

    popularity: tuple[float, ...]
    routed: tuple[float, ...] | None = None
    placement: str = "even"
    corrected: bool = False
    inference: bool = False
    chunk: float | None = None

    def problem(self) -> str | None:
        """What is wrong with the options in one line; None if nothing is."""
        experts = len(self.popularity)
        rules = (
            (_is_popularity(self.popularity), "experts.popularity must be numbers of at least 0, one of them above 0"),
            (
                self.routed is None or len(self.routed) == experts,
                f"experts.routed must have as many numbers as experts.popularity, {experts}",
            ),
            (
                self.routed is None or _is_popularity(self.routed),
                "experts.routed must be numbers of at least 0, one of them above 0",
            ),
            (
                self.placement in PLACEMENTS,
                f"unknown experts.placement '{self.placement}', expected one of: {', '.join(PLACEMENTS)}",
            ),
            (
                self.chunk is None or (math.isfinite(self.chunk) and self.chunk > 0),
                "experts.chunk must be more than 0 bytes",
            ),
        )
        return next((text for holds, text in rules if not holds), None)

    def tokens(self, gpus: int) -> tuple[float, ...]:
        """Return the share of all tokens that each of ``gpus`` computes; an expert has neighbouring GPUs."""
        actual = self.popularity if self.routed is None else self.routed
        expected = actual if self.corrected else self.popularity
        weights = expected if self.placement == "popular" else (1.0,) * len(expected)
        counts = devices_of(weights, gpus)
        shared = hosts_of_packed(counts, weights)
        ends = [sum(counts[: place + 1]) for place in range(len(counts))]
        found = [0.0] * gpus
        for place, count in enumerate(counts):
            mine = range(ends[place] - count, ends[place]) if count else [ends[shared[place]] - 1]
            for gpu in mine:
                found[gpu] += actual[place] / sum(actual) / len(mine)
        return tuple(found)


MOST_PIECES: Final = 64
"""Most micro-ops of one layer's all-to-all."""


def pipelined(
    templates: Sequence[PhaseTemplate], expert_share: float, layers: int, chunk: float
) -> tuple[PhaseTemplate, ...]:
    """Return phases in which experts compute while tokens travel (Lina, section 4: micro-ops).

    The tokens of each of ``layers`` layers go to experts and back in micro-ops of at most ``chunk`` bytes, at most
    :data:`MOST_PIECES`. While the experts compute a piece (their ``expert_share`` of the whole compute, divided over
    forward and backward pass), the next piece travels to them and the one before it back. All hosts take the steps of
    this pipeline together. What else a phase computes comes before its tokens leave.
    """
    found: list[PhaseTemplate] = []
    passes = [each.share for each in templates if each.returning]
    places = iter(range(len(templates)))
    for place in places:
        going, coming = templates[place], templates[place + 1] if place + 1 < len(templates) else None
        if going.collective != "alltoall" or coming is None or not coming.returning:
            found.append(going)
            continue
        pieces = min(MOST_PIECES, math.ceil(going.bytes / layers / chunk - 1e-9))
        experts = min(coming.share, expert_share * coming.share / sum(passes))
        found += _in_pieces(going, coming, experts, pieces) if pieces > 1 else (going, coming)
        next(places)
    return tuple(found)


def _in_pieces(going: PhaseTemplate, coming: PhaseTemplate, experts: float, pieces: int) -> tuple[PhaseTemplate, ...]:
    """The first piece goes; then one is computed while the next goes and the one before comes back; the last comes."""
    there, back = going.bytes / pieces, coming.bytes / pieces
    first = replace(going, share=going.share + coming.share - experts, bytes=there)
    steps = (
        replace(
            going,
            share=experts / pieces,
            bytes=there if step < pieces - 1 else 0.0,
            back_bytes=back if step > 0 else 0.0,
            overlap=1.0,
        )
        for step in range(pieces)
    )
    return (first, *steps, replace(coming, share=0.0, bytes=back))


def _is_popularity(numbers: Sequence[float]) -> bool:
    return all(math.isfinite(each) and each >= 0 for each in numbers) and any(numbers)


def forward_pass(model: Model) -> Model:
    """Return ``model`` for inference: a third of the compute, and the phases within it."""
    phases: list[PhaseTemplate] = []
    for phase in model.phases:
        if sum(each.share for each in phases) < 1 - 1e-9:
            phases.append(replace(phase, share=phase.share * BACKWARD_AND_FORWARD))
    return replace(model, flops_per_gpu=model.flops_per_gpu / BACKWARD_AND_FORWARD, phases=tuple(phases))


def devices_of(popularity: Sequence[float], devices: int) -> list[int]:
    """Return devices of each expert: in proportion to ``popularity``, by largest remainder; 0 shares with another.

    The first expert wins a tie. ``ValueError`` for no popularity at all, or a negative one.
    """
    whole = sum(map(Fraction, popularity))
    if whole <= 0 or min(popularity) < 0 or devices < 1:
        raise ValueError("popularity must be numbers of at least 0, one of them above 0, and devices at least 1")
    exact = [devices * Fraction(each) / whole for each in popularity]
    counts = [int(each) for each in exact]
    order = sorted(range(len(exact)), key=lambda place: (counts[place] - exact[place], place))
    for place in order[: devices - sum(counts)]:
        counts[place] += 1
    return counts


def hosts_of_packed(counts: Sequence[int], popularity: Sequence[float]) -> Mapping[int, int]:
    """Return expert without a device -> the expert whose device it shares: the least busy one per device."""
    load = {place: Fraction(popularity[place]) / count for place, count in enumerate(counts) if count}
    found: dict[int, int] = {}
    for place, count in enumerate(counts):
        if count == 0:
            host = min(load, key=lambda each: (load[each], each))
            found[place] = host
            load[host] += Fraction(popularity[place])
    return found
