"""What a difference between repeated measurements proves: nothing, unless it is larger than its spread. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True, slots=True)
class Difference:
    """The ``mean`` of paired differences, and their ``spread``; None: of a single pair, nothing is known about it."""

    mean: float
    spread: float | None = None

    @property
    def proven(self) -> bool:
        """Whether it is larger than its spread: then all pairs agree in sign."""
        return is_proven(self.mean, self.spread)


def is_proven(difference: float, spread: float | None) -> bool:
    """Whether ``difference`` is larger than its ``spread``; one without a spread proves nothing."""
    return spread is not None and abs(difference) > spread


def spread_of(values: Sequence[float]) -> float | None:
    """The largest of ``values`` minus the smallest; None below two.

    A range, not a standard deviation: there are two to five values, and it assumes no distribution.
    """
    return max(values) - min(values) if len(values) > 1 else None


def spread_over_seeds(values: Sequence[tuple[int, float]]) -> float | None:
    """The spread of (seed, value) pairs, None of one seed; values of the same seed count as one, with their mean."""
    by_seed: dict[int, list[float]] = {}
    for seed, value in values:
        by_seed.setdefault(seed, []).append(value)
    return spread_of([fmean(own) for own in by_seed.values()])


def paired(values: Sequence[float], reference: Sequence[float]) -> Difference:
    """``values`` against ``reference``, pair by pair; ``ValueError`` unless there are as many of both, at least one."""
    if not values or len(values) != len(reference):
        raise ValueError(f"expected pairs, not {len(values)} values against {len(reference)}")
    differences = [value - other for value, other in zip(values, reference, strict=True)]
    return Difference(fmean(differences), spread_of(differences))
