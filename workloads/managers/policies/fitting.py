"""What Optimus learns online (Peng et al., EuroSys 2018, sections 3.1 and 3.2): loss curves, and speeds by GPUs.

Both are linear in coefficients that cannot be negative, and are fitted by non-negative least squares (Lawson and
Hanson, *Solving Least Squares Problems*, 1974, chapter 23).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FEWEST_LOSSES: Final = 3
"""A loss curve has three coefficients."""
CONVERGED: Final = 0.05
"""A job has converged when its loss falls by less than this share over an epoch."""
_LIMITS: Final = 20
"""How many limits of the loss are tried: the one coefficient that is not linear."""
_MOST_TURNS: Final = 30
_TINY: Final = 1e-12


def nnls(matrix: Floats, target: Floats) -> Floats:
    """Return the x of at least 0 that minimises ``|matrix x - target|``. Shapes (m, n), (m,) -> (n,)."""
    unknowns = matrix.shape[1]
    found, free = np.zeros(unknowns), np.zeros(unknowns, dtype=np.bool_)
    for _ in range(_MOST_TURNS * unknowns):
        gradient = matrix.T @ (target - matrix @ found)
        gradient[free] = -inf
        if free.all() or gradient.max() <= _TINY * (1 + float(np.abs(target).max())):
            break
        free[int(gradient.argmax())] = True
        found = _feasible(matrix, target, found, free)
    return found


def _feasible(matrix: Floats, target: Floats, found: Floats, free: npt.NDArray[np.bool_]) -> Floats:
    """Solve for the ``free`` unknowns; those that would be negative stop at 0, and leave ``free``."""
    while free.any():
        solved = np.zeros_like(found)
        solved[free] = np.linalg.lstsq(matrix[:, free], target, rcond=None)[0]
        if (solved[free] > 0).all():
            return solved
        falling = free & (solved <= 0)
        step = float(np.min(found[falling] / np.maximum(found[falling] - solved[falling], _TINY)))
        found = found + step * (solved - found)
        free &= found > _TINY
        found[~free] = 0.0
    return np.zeros_like(found)


@dataclass(frozen=True, slots=True)
class LossCurve:
    """Loss after k epochs of work: 1 / (``slope`` k + ``start``) + ``limit``; no coefficient is negative."""

    slope: float
    start: float
    limit: float

    def loss(self, epochs: float) -> float:
        """Loss after so many epochs."""
        return 1.0 / (self.slope * epochs + self.start) + self.limit

    def converges_at(self, converged: float = CONVERGED, most: float = 1e6) -> float:
        """Return the first epoch over which the loss falls by less than ``converged`` of what it was.

        That share falls from epoch to epoch, so the epoch is found by bisection; at most ``most``.
        """
        low, high = 0.0, 1.0
        while self._falls(high) >= converged and high < most:
            low, high = high, 2 * high
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self._falls(middle) >= converged else (low, middle)
        return min(most, high)

    def _falls(self, epoch: float) -> float:
        before = self.loss(epoch)
        return (before - self.loss(epoch + 1)) / before


@lru_cache(maxsize=4096)
def fit_losses(losses: tuple[tuple[float, float], ...]) -> LossCurve | None:
    """Return the curve through (epochs of work, loss), later ones weighted more; None for too few of them."""
    if len({epochs for epochs, _ in losses}) < FEWEST_LOSSES:
        return None
    epochs, values = (np.array(column, dtype=np.float64) for column in zip(*losses, strict=True))
    weights = np.linspace(0.5, 1.0, len(losses))
    best: tuple[float, LossCurve] | None = None
    for limit in np.linspace(0.0, 1.0, _LIMITS, endpoint=False) * values.min():
        beyond = values - limit
        # d(1 / y) = dy / y^2: so weighted, errors of the inverse count as errors of the loss do.
        scale = weights * beyond**2
        slope, start = nnls(np.stack([epochs, np.ones_like(epochs)], axis=1) * scale[:, None], scale / beyond)
        curve = LossCurve(float(slope), max(float(start), _TINY), float(limit))
        error = float(np.sum((weights * ([curve.loss(each) for each in epochs] - values)) ** 2))
        if best is None or error < best[0]:
            best = (error, curve)
    return None if best is None else best[1]


def fit_steps(samples: Mapping[int, float]) -> tuple[float, float, float]:
    """Return (compute, ring, latency): seconds of a step on n GPUs are compute / n + ring (n - 1) / n + latency (n -
    1).

    ``samples``: GPUs -> seconds. A single GPU sends nothing. With fewer than two counts only the compute is known.
    ``ValueError`` without a sample.
    """
    if not samples:
        raise ValueError("a speed needs at least one sample")
    if len(samples) == 1:
        ((gpus, seconds),) = samples.items()
        return gpus * seconds, 0.0, 0.0
    counts = np.array(list(samples), dtype=np.float64)
    matrix = np.stack([1 / counts, (counts - 1) / counts, counts - 1], axis=1)
    seconds_of = np.array(list(samples.values()), dtype=np.float64)
    compute, ring, latency = nnls(matrix / seconds_of[:, None], np.ones_like(seconds_of))
    return float(compute), float(ring), float(latency)


def fitted_step_s(coefficients: tuple[float, float, float], gpus: int) -> float:
    """Seconds of a step on ``gpus`` GPUs, by the coefficients of :func:`fit_steps`."""
    compute, ring, latency = coefficients
    return compute / gpus + ring * (gpus - 1) / gpus + latency * (gpus - 1)
