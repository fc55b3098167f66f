"""What Crux's factor k and its clamp are worth: the order of jobs for each clamp, against the best order.

A clamp c keeps k_j between 1 / c and c; 1 leaves the order to intensity alone. Small cases are those of figure 16, with
the paths of the best order, a level per job, and the performance that ``crux-fig16`` prints for priority
assignment; scenarios are computed by the flow engine, with Crux's paths and with hashed ones, and give GPU utilisation.

Two rules, stated before anything was measured, the first on one set of cases and the second on all others:

* :func:`largest_without_cost` proposes the largest clamp of :data:`CLAMPS` whose mean performance on
  :data:`CHOSEN_ON` is not below that without k.
* A clamp is confirmed on another set where its mean is no lower than without k by more than the half width of the
  95 % confidence interval of the difference, case by case; in scenarios, by more than :data:`POINTS`.

The first proposes 2, and the scenarios do not confirm it: on ``clos96-2to1`` clamps up to 3 leave the order to
intensity and cost 9 points against 10. So the default stays 10; the target of a row is that 10 costs nothing there.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Final

from benchmarks.common import Line, main
from controller.schedulers.crux.priority import CLAMP
from testbed.api import run_scenario
from testbed.errors import RunFailedError
from testbed.progress import Progress
from testbed.reproduce.crux.figure_16 import CONFIDENCE, GENERATORS
from testbed.reproduce.crux.figure_16_cases import JOBS
from testbed.reproduce.crux.figure_16_mechanisms import crux_order
from testbed.reproduce.crux.figure_16_optimum import Yardstick
from testbed.reproduce.paper_experiment import Settings
from testbed.reproduce.process_pool import each_case
from testbed.scenario import emulated, load

TITLE: Final = "the clamp of Crux's factor k: performance of priority assignment, GPU utilisation of scenarios, %"
CLAMPS: Final = (1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
CHOSEN_ON: Final = ("independent", 2)
"""Generator and seed. ``crux-fig16`` shows seed 1."""
CONFIRMED_ON: Final = (("independent", 3), ("population", 2))
CASES: Final = 600
POINTS: Final = 0.05
"""Of GPU utilisation: less is the tolerance of the flow engine."""


def performances(generator: str, seed: int, index: int) -> tuple[float, ...]:
    """Return utilisation over that of the best order for each of :data:`CLAMPS`, on the paths of the best order."""
    case = GENERATORS[generator](seed, index)
    yardstick = Yardstick(case.choices())
    paths = yardstick.best_paths(0)[1]
    best = yardstick.best_order(paths)[0]
    orders = [crux_order(case, paths, clamp) for clamp in CLAMPS]
    return tuple(
        yardstick.utilization(paths, tuple(order.index(job) for job in range(JOBS))) / best for order in orders
    )


def largest_without_cost(means: Mapping[float, float]) -> float:
    """Return the largest clamp whose mean is not below that of clamp 1."""
    return max(clamp for clamp, value in means.items() if value >= means[1.0])


def differences(values: Sequence[tuple[float, ...]]) -> dict[float, tuple[float, float]]:
    """Return clamp -> mean difference against clamp 1, and the half width of its 95 % confidence interval."""
    found = {}
    for place, clamp in enumerate(CLAMPS):
        gains = [case[place] - case[0] for case in values]
        found[clamp] = fmean(gains), CONFIDENCE * stdev(gains) / math.sqrt(len(gains))
    return found


def measure(quick: bool) -> list[Line]:
    """A row per set of cases, then one per scenario whose utilisation depends on the clamp, and one for the others."""
    cases = 10 if quick else CASES
    lines = []
    for generator, seed in (CHOSEN_ON, *CONFIRMED_ON):
        values = _cases(generator, seed, cases)
        lines += _case_lines(f"{generator}, seed {seed}, {cases} cases", values, (generator, seed) == CHOSEN_ON)
    scenarios = ("hello.yaml", "clos96.yaml") if quick else tuple(name for name in emulated() if not load(name).manager)
    return lines + _scenario_lines(scenarios)


def _cases(generator: str, seed: int, cases: int) -> list[tuple[float, ...]]:
    settings = Settings(cases, seed=seed, processes=len(os.sched_getaffinity(0)))
    with Progress(quiet=False) as progress:
        return each_case(partial(performances, generator), settings, progress)


def _case_lines(label: str, values: Sequence[tuple[float, ...]], chooses: bool) -> list[Line]:
    means = {clamp: fmean(case[place] for case in values) for place, clamp in enumerate(CLAMPS)}
    gains = differences(values)
    note = f"largest without cost: {largest_without_cost(means):g}" if chooses else ""
    mean, half = gains[CLAMP]
    target, holds = f"clamp {CLAMP:g} costs nothing against k = 1", mean + half >= 0
    changes = {_column(clamp): f"{100 * mean:+.3f} +- {100 * half:.3f}" for clamp, (mean, half) in gains.items()}
    return [
        Line({"cases": label, **{_column(c): f"{100 * m:.2f}" for c, m in means.items()}}),
        Line({"cases": "against k = 1", **changes}, target, "pass" if holds else "missed", note),
    ]


def _column(clamp: float) -> str:
    return "k = 1" if clamp == 1 else f"clamp {clamp:g}"


def _scenario_lines(scenarios: Sequence[str]) -> list[Line]:
    lines, same = [], []
    for paths in (True, False):
        for scenario in scenarios:
            label = scenario.removesuffix(".yaml") + ("" if paths else ", hashed paths")
            try:
                found = utilizations(scenario, paths)
            except RunFailedError as error:
                lines.append(Line({"cases": label}, note=f"left out: {error}"))
                continue
            if max(found.values()) - min(found.values()) < POINTS / 100:
                same.append(label)
                continue
            columns = {_column(clamp): f"{100 * value:.2f}" for clamp, value in found.items()}
            holds = found[CLAMP] >= found[1.0] - POINTS / 100
            target = f"clamp {CLAMP:g} costs less than {POINTS:g} points"
            lines.append(Line({"cases": label, **columns}, target, "pass" if holds else "missed"))
    return [*lines, Line({"cases": f"the same for every clamp: {len(same)} scenarios"}, note="; ".join(same))]


def utilizations(scenario: str, paths: bool) -> dict[float, float]:
    """Return clamp -> GPU utilisation of a scenario by the flow engine, on Crux's paths or on hashed ones."""
    labels = {clamp: f"clamp-{clamp:g}".replace(".", "-") for clamp in CLAMPS}
    choices = [
        f"{{name: crux, label: {label}, clamp: {clamp:g}, paths: {str(paths).lower()}}}"
        for clamp, label in labels.items()
    ]
    overrides = [f"schedulers=[{', '.join(choices)}]", "checks=[]"]
    with tempfile.TemporaryDirectory(prefix="clamp-") as folder:
        runs = run_scenario(scenario, engine="flow", overrides=overrides, out=Path(folder)).summary["runs"]
    by_label = {run["scheduler"]: float(run["gpu_utilization"]) for run in runs}
    return {clamp: by_label[label] for clamp, label in labels.items()}


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
