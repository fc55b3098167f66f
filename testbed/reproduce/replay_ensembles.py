"""Replays repeated with several seeds and numerical settings: means, spreads, and which differences prove something.

A seed draws another trace (or, for a trace from a file, other models), other hashes and other phases. Numerical
settings change nothing of the model; what they change is the error of a replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean

from testbed.engines.replay.outcome import refusals
from testbed.fluid.numerical_settings import NUMERICAL_SETTINGS
from testbed.metrics.confidence import Difference, paired, spread_of
from testbed.progress import Progress
from testbed.reproduce.kept_replays import Cell, Result, results
from testbed.reproduce.paper_experiment import Settings

Variant = tuple[int, str]
"""A seed, and the name of numerical settings."""
Variants = Mapping[Variant, Result]
"""The results of a replay by variant."""


@dataclass(frozen=True)
class Ensemble:
    """A quantity of a replay, by variant."""

    values: Mapping[Variant, float]

    @property
    def mean(self) -> float:
        """The mean over all variants."""
        return fmean(self.values.values())

    @property
    def seed_spread(self) -> float | None:
        """The largest difference that another seed makes, numerical settings being the same; None of one seed."""
        return self._largest(1)

    @property
    def numerical_spread(self) -> float | None:
        """The largest difference that other numerical settings make, the seed being the same; None of one setting."""
        return self._largest(0)

    def numbers(self, name: str) -> dict[str, float]:
        """Mean and spreads of a row, as ``name``, ``<name>_seed_spread`` and ``<name>_numerical_spread``."""
        spreads = {f"{name}_seed_spread": self.seed_spread, f"{name}_numerical_spread": self.numerical_spread}
        return {name: self.mean} | {key: value for key, value in spreads.items() if value is not None}

    def against(self, reference: Ensemble) -> Difference:
        """The mean difference to ``reference``, variant by variant, and the spread below which it proves nothing.

        That is the spread of the paired differences over all variants, but at least the numerical spread of each of
        the two: what an error may amount to proves nothing even where two errors cancel. One seed has no spread,
        whatever its numerical settings: how much another one would change is unknown.
        """
        found = paired([self.values[each] for each in reference.values], list(reference.values.values()))
        if len({seed for seed, _ in reference.values}) < 2:
            return replace(found, spread=None)
        spreads = (found.spread, self.numerical_spread, reference.numerical_spread)
        return replace(found, spread=max((each for each in spreads if each is not None), default=None))

    def _largest(self, fixed: int) -> float | None:
        by_fixed: dict[object, list[float]] = {}
        for variant, value in self.values.items():
            by_fixed.setdefault(variant[fixed], []).append(value)
        spreads = [spread for values in by_fixed.values() if (spread := spread_of(values)) is not None]
        return max(spreads, default=None)


def variants_of(settings: Settings) -> tuple[Variant, ...]:
    """Every seed with each of the numerical settings, the default ones of the first seed first."""
    seeds = range(settings.seed, settings.seed + max(1, settings.seeds))
    return tuple((seed, name) for name, seed in product(settings.numerics or NUMERICAL_SETTINGS, seeds))


def ensembles(cells: Sequence[Cell], settings: Settings, progress: Progress) -> dict[Cell, Variants]:
    """Return the results of all variants of each cell, kept or computed."""
    wanted = {
        each: {(seed, name): replace(each, seed=seed, numerics=name) for seed, name in variants_of(settings)}
        for each in cells
    }
    found = results([one for of_cell in wanted.values() for one in of_cell.values()], settings, progress)
    return {each: {variant: found[one] for variant, one in of_cell.items()} for each, of_cell in wanted.items()}


def over(variants: Variants, quantity: Callable[[Result], float]) -> Ensemble:
    """A quantity of every variant."""
    return Ensemble({variant: float(quantity(result)) for variant, result in variants.items()})


def utilization(variants: Variants) -> Ensemble:
    """GPU utilisation, 0 to 1."""
    return over(variants, lambda result: float(result["gpu_utilization"]))


def points_numbers(name: str, difference: Difference) -> dict[str, float]:
    """A difference of shares of a row in points, as ``name`` and ``<name>_spread``."""
    spread = {} if difference.spread is None else {f"{name}_spread": 100 * difference.spread}
    return {name: 100 * difference.mean} | spread


def unproven_note(labels: Iterable[str], reference: str) -> str:
    """Say which differences to ``reference`` prove nothing; empty for none."""
    listed = ", ".join(labels)
    return f"against {reference}, below the spread, which proves nothing: {listed}" if listed else ""


def refused_note(found: Iterable[Variants]) -> str:
    """Say how many jobs of the traces could never start, with the reason of the first; empty for none."""
    refused: dict[str, str] = {}
    for variants in found:
        for result in variants.values():
            refused |= result.get("refused", {})
    return refusals(refused)
