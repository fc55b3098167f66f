"""Numerical settings of long-run rates: no model, only how long they are computed and when they count as stable.

No result may hinge on them. They differ by little, but a replay amplifies it: a job that ends a moment earlier frees
other GPUs for the next one. So replays are repeated with several of them, and their spread is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class NumericalSettings:
    """When :func:`testbed.fluid.steady_state.settle` stops."""

    first_periods: int = 8
    """Iterations of the slowest job, alone, in the first stretch."""
    most_doublings: int = 6
    """How often the stretch is doubled at most."""
    tolerance: float = 1e-3
    """A stretch twice as long must move the busy GPUs by less than this share of all."""


STANDARD: Final = NumericalSettings()
NUMERICAL_SETTINGS: Final[Mapping[str, NumericalSettings]] = {
    "standard": STANDARD,
    "longer": NumericalSettings(first_periods=12, tolerance=5e-4),
}
"""By name; the first is the default. The second starts with stretches half as long again, and is twice as strict."""
