"""Figures 19 to 22 of Crux over many hash seeds, their packets simulated: how much of a bar is the draw of its hashes.

A bar of the paper without Crux is one draw, and so is a run with packets. Beside them stands what the same hashes give
if rates are max-min fair, as the inputs are fitted. Nothing is chosen by this table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Final

from benchmarks.common import Line, main
from testbed.reproduce.crux.figures_19_to_22 import jct_changes, utilization
from testbed.reproduce.crux.paper_bars import FIGURES, Bar
from testbed.reproduce.flow_entries import AS_PACKETS, Entry, Twin, flow_entry, flow_experiment
from testbed.reproduce.kept_runs import CRUX, ECMP, Task, Treatment

TITLE: Final = "figures 19 to 22 over hash seeds, packets simulated, %"
SEEDS: Final = range(1, 21)
MAX_MIN: Final[Twin] = "max-min"
Pair = tuple[Entry, Entry]


def pair(scenario: str, seed: int, twin: Twin = AS_PACKETS) -> Pair:
    """Without Crux and with it, on the same five-tuples."""

    def simulated(treatment: Treatment) -> Entry:
        return flow_entry(flow_experiment(Task(scenario, treatment, seed), twin=twin))

    return simulated(ECMP), simulated(CRUX)


def pairs(scenario: str, seeds: Sequence[int], twin: Twin) -> list[Pair]:
    """A pair for each of ``seeds``."""
    return [pair(scenario, seed, twin) for seed in seeds]


def line(bar: Bar, pairs: Sequence[Pair], max_min: Sequence[Pair]) -> Line:
    """The row of ``bar``: the paper's numbers beside means, spreads and how many seeds are below the paper's."""
    without = [utilization(before) for before, _ in pairs]
    changes = [jct_changes(before, after) for before, after in pairs]
    cells: dict[str, object] = {
        "row": bar.label,
        "without: paper": f"{100 * bar.without:.1f}",
        "mean": f"{100 * fmean(without):.1f}",
        "+-": f"{100 * stdev(without):.1f}" if len(without) > 1 else "-",
        "least, most": f"{100 * min(without):.1f}, {100 * max(without):.1f}",
        "seeds below the paper": f"{sum(each < bar.without for each in without)} of {len(without)}",
        "max-min": f"{100 * fmean(utilization(before) for before, _ in max_min):.1f}",
        "Crux: paper": f"{100 * bar.crux:.1f}",
        "here": f"{100 * fmean(utilization(after) for _, after in pairs):.1f}",
        "by max-min": f"{100 * fmean(utilization(after) for _, after in max_min):.1f}",
    }
    return Line(cells | {"JCT: paper / here": ", ".join(_change(name, bar, changes) for name in bar.jct)})


def _change(kind: str, bar: Bar, changes: Sequence[Mapping[str, float]]) -> str:
    return f"{kind} {100 * bar.jct[kind]:+.0f} / {100 * fmean(each[kind] for each in changes if kind in each):+.0f}"


def measure(quick: bool) -> list[Line]:
    """A row per group of bars; ``quick`` takes two hash seeds."""
    seeds = SEEDS[:2] if quick else SEEDS
    bars = [bar for figure in FIGURES.values() for bar in figure]
    return [line(bar, *(pairs(bar.scenario, seeds, twin) for twin in (AS_PACKETS, MAX_MIN))) for bar in bars]


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
