"""How far a mean over seeds can be trusted: confidence intervals, and what a difference proves. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

LEVEL: Final = 0.95
_T: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""97.5 % quantiles of Student's t distribution with 1 to 30 degrees of freedom."""
_MANY: Final = 1.96


def half_width(values: Sequence[float]) -> float | None:
    """Half the width of the 95 % confidence interval of the mean of ``values``, by Student's t; None below two.

    Holds for independent values of about normal distribution, as runs with different seeds are. Beyond 31 values the
    quantile is that of the normal distribution, widened as Cornish and Fisher's first term says.
    """
    count = len(values)
    if count < 2:
        return None
    freedom = count - 1
    quantile = _T[freedom - 1] if freedom <= len(_T) else _MANY + (_MANY**3 + _MANY) / (4 * freedom)
    return quantile * statistics.stdev(values) / math.sqrt(count)


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


def chance_beyond_spread(pairs: int) -> float | None:
    """How often pure chance is larger than its spread: the probability for so many independent pairs, None below two.

    For normally distributed differences whose true mean is 0; simulated. Of more than six pairs less than of six.
    """
    known = {2: 0.294, 3: 0.081, 4: 0.021, 5: 0.006}
    return None if pairs < 2 else known.get(pairs, 0.001)


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
