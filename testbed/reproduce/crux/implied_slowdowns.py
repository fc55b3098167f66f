"""Figures 21 and 22 of Crux: what their bars say of each kind of job, and how near any inputs come to them.

A group of bars has two kinds of jobs and four numbers: two utilisations and two changes of JCT. They determine the
utilisation of each kind without and with Crux, and with the Ideal bars how much longer than alone its iterations are.
It is computed for the paper, and for the flow engine with the fitted inputs. Then the flow engine tries a grid of
inputs, wider than that of the fit, and reports the point that comes nearest to both bars of the row: what a model in
which jobs share their NICs can reach at all. Nothing is fitted to what this finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from statistics import fmean
from typing import Final

import numpy as np

from testbed.errors import RunFailedError
from testbed.progress import Progress
from testbed.reproduce.crux.inputs.figure_runs import SHORT, computed, mean_utilization, overrides
from testbed.reproduce.crux.paper_bars import FIGURES, Bar
from testbed.reproduce.paper_experiment import PaperRow, Settings
from testbed.reproduce.process_pool import started
from workloads.models.figure_calibration import A_PRIORI, FITTED, FigureInputs

KINDS: Final = ("bert", "resnet")
OVERLAPS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
CHANNELS: Final = (1, 2, 4)
SEED: Final = 101
"""Of the hash, as in the fit. The jobs share NICs, which no hash chooses."""

Found = Mapping[FigureInputs, tuple[float, float]]
"""Inputs -> utilisations without and with Crux."""
Utilizations = Mapping[str, float]
"""Kind of job -> mean utilisation of its GPUs."""


def implied(bar: Bar, gpus: Mapping[str, int]) -> tuple[Utilizations, Utilizations]:
    """Return the utilisations of each kind without and with Crux that give the bars and the changes of JCT.

    ``gpus``: kind -> GPUs of all its jobs. A JCT that changes by c changes the utilisation by 1 / (1 + c).
    """
    kinds = tuple(bar.jct)
    share = np.array([gpus[kind] for kind in kinds], float) / sum(gpus.values())
    faster = np.array([1 / (1 + bar.jct[kind]) for kind in kinds])
    without = np.linalg.solve(np.array([share, share * faster]), np.array([bar.without, bar.crux]))
    return dict(zip(kinds, without, strict=True)), dict(zip(kinds, without * faster, strict=True))


def reproduce(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per group of bars."""
    bars = [bar for figure in ("crux-fig21", "crux-fig22") for bar in FIGURES[figure]]
    points = [FITTED, *grid()]
    with started(settings.processes, lambda pool: pool) as pool:
        tasks = [(bar.scenario, point) for bar in bars for point in points]
        progress.phase("flow engine", len(tasks))
        found: dict[str, dict[FigureInputs, tuple[float, float]]] = {bar.scenario: {} for bar in bars}
        for number, ((scenario, point), pair) in enumerate(zip(tasks, pool.map(both_bars, tasks), strict=True), 1):
            if pair is not None:
                found[scenario][point] = pair
            progress.advance_to(number)
    return [*(_row(bar, found[bar.scenario]) for bar in bars), for_all(bars, found)]


def grid() -> Iterable[FigureInputs]:
    """Overlaps of BERT and ResNet, and connections per pair of ports; no GPT runs in these figures."""
    for bert, resnet, channels in product(OVERLAPS, OVERLAPS, CHANNELS):
        yield FigureInputs(bert, resnet, A_PRIORI.gpt_hidden_share, channels)


def both_bars(task: tuple[str, FigureInputs]) -> tuple[float, float] | None:
    """Return the flow engine's utilisations without and with Crux; None if a job is left too little to be measured."""
    scenario, inputs = task
    changed = (SHORT, *overrides(scenario, inputs))
    try:
        without, crux = (computed(scenario, scheduler, changed, SEED) for scheduler in ("ecmp", "crux"))
    except RunFailedError:
        return None
    return mean_utilization(without), mean_utilization(crux)


def slowdowns(scenario: str, inputs: FigureInputs) -> dict[str, float]:
    """Return how much longer than alone iterations are by the flow engine: ``bert_without``, ``bert_crux`` ..."""
    changed = (SHORT, *overrides(scenario, inputs))
    alone, without, crux = (_by_kind(computed(scenario, each, changed, SEED)) for each in ("ideal", "ecmp", "crux"))
    return _longer(alone, without, crux)


def _longer(alone: Utilizations, without: Utilizations, crux: Utilizations) -> dict[str, float]:
    found = {f"{kind}_without": alone[kind] / without[kind] - 1 for kind in KINDS}
    return found | {f"{kind}_crux": alone[kind] / crux[kind] - 1 for kind in KINDS}


def _by_kind(jobs: Mapping[str, tuple[int, float, float]]) -> Utilizations:
    """Kind -> utilisation; all jobs of a kind have as many GPUs."""
    return {kind: fmean(busy for job, (_, busy, _) in jobs.items() if job.startswith(kind)) for kind in KINDS}


def _row(bar: Bar, found: Found) -> PaperRow:
    changed = (SHORT, *overrides(bar.scenario, FITTED))
    jobs = computed(bar.scenario, "ideal", changed, SEED)
    gpus = {kind: sum(count for job, (count, _, _) in jobs.items() if job.startswith(kind)) for kind in KINDS}
    paper = _longer(_by_kind(jobs), *implied(bar, gpus))

    off = {point: _off(bar, pair) for point, pair in found.items()}
    nearest = min(off, key=lambda point: max(map(abs, off[point])))
    without, crux = off[nearest]
    here = slowdowns(bar.scenario, FITTED) | {"nearest_without": without, "nearest_crux": crux}
    return PaperRow(bar.label, paper, here, f"nearest: {_in_words(nearest)}")


def for_all(bars: Sequence[Bar], found: Mapping[str, Found]) -> PaperRow:
    """The one point that comes nearest to all bars, and its distances (root mean square)."""
    common = [point for point in found[bars[0].scenario] if all(point in found[bar.scenario] for bar in bars)]
    off = {point: np.array([_off(bar, found[bar.scenario][point]) for bar in bars]) for point in common}
    nearest = min(off, key=lambda point: float(np.square(off[point]).sum()))
    without, crux = np.sqrt(np.square(off[nearest]).mean(axis=0)).tolist()
    return PaperRow("one point for all", {}, {"nearest_without": without, "nearest_crux": crux}, _in_words(nearest))


def _off(bar: Bar, pair: tuple[float, float]) -> tuple[float, float]:
    """How many points the two utilisations are off the bars."""
    return 100 * (pair[0] - bar.without), 100 * (pair[1] - bar.crux)


def _in_words(point: FigureInputs) -> str:
    overlaps = f"overlap of BERT {point.bert_overlap:g}, of ResNet {point.resnet_overlap:g}"
    return f"{overlaps}, channels: {point.channels}"
