"""Inputs of the trace figures that the paper does not publish: how far jobs are scattered, and how much they send.

:mod:`testbed.reproduce.crux.traces.calibration` fits them. The values here are what it printed; they were committed
before a bar that they predict was computed with them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from testbed.reproduce.kept_replays import RELAXED, Cell


@dataclass(frozen=True, slots=True)
class TraceInputs:
    """``relaxed``: the probability that a job gives up locality; None: first free GPUs. ``volume``: a factor.

    ``channels``: connections per pair of ports; not fitted to a trace figure.
    """

    relaxed: float | None
    volume: float
    channels: int = 1

    def of(self, cell: Cell) -> Cell:
        """The replay with these inputs; the manager ``none`` scatters so, others place as they do."""
        scattered = cell if cell.manager != "none" or self.relaxed is None else self._scattered(cell)
        return replace(scattered, volume=self.volume, channels=self.channels)

    def _scattered(self, cell: Cell) -> Cell:
        return replace(cell, manager=RELAXED, relaxed=self.relaxed)


A_PRIORI: Final = TraceInputs(relaxed=None, volume=1.0)
"""Chosen before anything was compared: the first free GPUs, the volumes of the catalogue, one connection."""
