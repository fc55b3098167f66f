"""Figures 19 to 22 of Crux by the fluid model, for other values of what no Ideal bar settles. Nothing is run.

An Ideal bar fixes the communication of BERT and ResNet that is exposed, not how much more is overlapped; of GPT's
it gives only a bound. Every row for other overlaps of BERT and ResNet and other hidden shares of GPT, each job alone
kept where its Ideal bar is. Nothing is chosen by this table.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from statistics import fmean
from typing import Final

from benchmarks.common import Line, main
from testbed.api import prepare
from testbed.reproduce.crux.figures_19_to_22 import kind
from testbed.reproduce.crux.fluid_prediction import overall, predict
from testbed.reproduce.crux.paper_bars import FIGURES, Bar
from testbed.reproduce.kept_runs import CRUX, ECMP, IDEAL, Treatment
from workloads.models.calibration import CALIBRATED
from workloads.models.figure_calibration import HIDDEN_SHARE, calibrations

TITLE: Final = "figures 19 to 22 by the fluid model, for other overlaps of BERT and ResNet and hidden shares of GPT, %"
OVERLAPS: Final = (0.0, 0.25, 0.5)
SHARES: Final = (HIDDEN_SHARE, 1 / 3, 1 / 2)
SEEDS: Final = 10
CHOSEN: Final = (CALIBRATED["crux-bert"].overlap, HIDDEN_SHARE)


def overrides(scenario: str, overlap: float, share: float) -> tuple[str, ...]:
    """The scenario's jobs with that overlap of BERT and ResNet and that hidden share of GPT; alone as before."""
    chosen = {
        name: replace(one, overlap=overlap) if one.hidden_share is None else replace(one, hidden_share=share)
        for name, one in calibrations(scenario).items()
    }
    jobs = [job.name for job in prepare(scenario).jobs]
    return tuple(
        text
        for job in jobs
        for text in (
            f"jobs.{job}.overlap={chosen[kind(job)].overlap:.6f}",
            f"jobs.{job}.communication={chosen[kind(job)].gradient_bytes / 1e9:.6g}GB",
        )
    )


def expected(scenario: str, treatment: Treatment, changed: tuple[str, ...], seeds: int) -> float:
    """GPU utilisation by the fluid model, the mean over hash seeds."""
    values = []
    for seed in range(1, seeds + 1):
        experiment = prepare(scenario, overrides=[*treatment.overrides, *changed], seed=seed).experiments[0]
        values.append(overall(predict(experiment), {job.name: len(job.gpus) for job in experiment.jobs}))
    return fmean(values)


def variants(scenario: str) -> Iterator[tuple[float, float]]:
    """The overlaps, and where there is GPT its shares too."""
    shares = SHARES if "gpt" in calibrations(scenario) else SHARES[:1]
    for share in shares:
        for overlap in OVERLAPS:
            yield overlap, share


def measure(quick: bool) -> list[Line]:
    """A row per group of bars and variant; ``quick`` takes two hash seeds."""
    seeds = 2 if quick else SEEDS
    return [
        _line(bar, overlap, share, seeds)
        for bars in FIGURES.values()
        for bar in bars
        for overlap, share in variants(bar.scenario)
    ]


def _line(bar: Bar, overlap: float, share: float, seeds: int) -> Line:
    changed = overrides(bar.scenario, overlap, share)
    ecmp, crux = (expected(bar.scenario, treatment, changed, seeds) for treatment in (ECMP, CRUX))
    ideal = expected(bar.scenario, IDEAL, changed, 1)
    cells: dict[str, str | float] = {"row": bar.scenario, "overlap": overlap, "share": f"{share:.2f}"}
    for name, paper, here in (("ecmp", bar.without, ecmp), ("crux", bar.crux, crux), ("ideal", bar.ideal, ideal)):
        cells |= {f"{name}: paper": f"{100 * paper:.1f}", f"{name}: fluid": f"{100 * here:.1f}"}
    cells |= {"gain: paper": f"{bar.paper['gain_points']:.1f}", "gain: fluid": f"{100 * (crux - ecmp):.1f}"}
    return Line(cells, note="chosen" if (overlap, share) == CHOSEN else "")


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
