"""How far a mean over seeds can be trusted: confidence intervals of a few values. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
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
