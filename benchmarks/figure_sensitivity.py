"""Figures 19 to 22 of Crux by the flow engine, with one fitted input at a time moved over the grid of the fit.

Each job alone stays where its Ideal bar is. The fit reads the bars without Crux; this shows how far the bars with Crux
hinge on what those do not tell. Nothing is chosen by this table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import fmean
from typing import Final

from benchmarks.common import Line, main
from testbed.errors import RunFailedError
from testbed.reproduce.crux.inputs.figure_runs import computed, mean_utilization, overrides
from testbed.reproduce.crux.inputs.input_fit import CHANNELS, HIDDEN_SHARES, OVERLAPS, RESNET_COMPUTES_S, seen
from testbed.reproduce.crux.paper_bars import FIGURES, Bar
from workloads.models.figure_calibration import FITTED, FigureInputs

TITLE: Final = "figures 19 to 22 by the flow engine, one fitted input at a time moved over its grid, %"
SEEDS: Final = 3


def variants(scenario: str) -> Iterator[tuple[str, FigureInputs]]:
    """The fitted inputs, then every other value of each input that the jobs of ``scenario`` have."""
    yield "fitted", FITTED
    moved = (
        *((f"overlap of BERT {value:g}", replace(FITTED, bert_overlap=value)) for value in OVERLAPS),
        *((f"overlap of ResNet {value:g}", replace(FITTED, resnet_overlap=value)) for value in OVERLAPS),
        *((f"hidden share {value:.2f}", replace(FITTED, gpt_hidden_share=value)) for value in HIDDEN_SHARES),
        *((f"channels {value}", replace(FITTED, channels=value)) for value in CHANNELS),
        *((f"ResNet computes {value:g} s", replace(FITTED, resnet_compute_s=value)) for value in RESNET_COMPUTES_S),
    )
    for label, inputs in moved:
        if seen(scenario, inputs) != seen(scenario, FITTED):
            yield label, inputs


def measure(quick: bool) -> list[Line]:
    """A row per group of bars and variant; ``quick`` takes one hash seed."""
    seeds = 1 if quick else SEEDS
    bars = [bar for figure in FIGURES.values() for bar in figure]
    return [_line(bar, label, inputs, seeds) for bar in bars for label, inputs in variants(bar.scenario)]


def _line(bar: Bar, label: str, inputs: FigureInputs, seeds: int) -> Line:
    cells: dict[str, str | float] = {"row": bar.scenario, "inputs": label}
    for scheduler, paper in (("ecmp", bar.without), ("crux", bar.crux)):
        here = _utilization(bar.scenario, scheduler, inputs, seeds)
        shown = "-" if here is None else f"{100 * here:.1f}"
        cells |= {f"{scheduler}: paper": f"{100 * paper:.1f}", f"{scheduler}: flow": shown}
    return Line(cells)


def _utilization(scenario: str, scheduler: str, inputs: FigureInputs, seeds: int) -> float | None:
    """The mean over hash seeds; None if a job is left too little to measure."""
    changed = overrides(scenario, inputs)
    try:
        return fmean(mean_utilization(computed(scenario, scheduler, changed, seed)) for seed in range(1, seeds + 1))
    except RunFailedError:
        return None


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
