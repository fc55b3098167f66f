"""Figures 21 and 22 of Crux: what their bars say of each kind of job, and how near any inputs come to them.

A group of bars has two kinds of jobs and four numbers: two utilisations and two changes of JCT. They determine the
utilisation of each kind without and with Crux, and with the Ideal bars how much longer than alone its iterations are.
It is computed for the paper, and for the flow engine with the fitted inputs. Then the flow engine tries a grid of
inputs, other than that of the fit, and reports the point that comes nearest to both bars of the row: what a model in
which jobs share their NICs can reach at all. Nothing is fitted to what this finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from statistics import fmean
from typing import Final

import numpy as np

from testbed.errors import RunFailedError
from testbed.machine.process_pool import started
from testbed.progress import Progress
from testbed.reproduce.crux.inputs.figure_runs import computed, overrides
from testbed.reproduce.crux.paper_bars import FIGURES, Bar
from testbed.reproduce.paper_experiment import PaperRow, Settings
from workloads.models.figure_calibration import FITTED, FigureInputs

KINDS: Final = ("bert", "resnet")
OVERLAPS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
CHANNELS: Final = (1, 2, 4)
CALIBRATED_ON: Final = (
    "here: each figure's Ideal bars and the ten bars without Crux (crux-calibration); nearest inputs: chosen by the "
    "bars without and with Crux"
)
SEEDS: Final = range(101, 105)
"""Of the hash: the first of the fit's."""

Utilizations = Mapping[str, float]
"""Kind of job -> mean utilisation of its GPUs."""
Pair = tuple[Utilizations, Utilizations]
"""Without and with Crux."""
Distances = Mapping[FigureInputs, tuple[float, float]]
"""Inputs -> points that the flow engine's utilisations are off the bars without and with Crux."""
Jobs = Mapping[str, tuple[int, float, float]]
"""As :func:`~testbed.reproduce.crux.inputs.figure_runs.computed` returns them."""


def implied(bar: Bar, gpus: Mapping[str, int]) -> Pair:
    """Return the utilisations of each kind without and with Crux that give the bars and the changes of JCT.

    ``gpus``: kind -> GPUs of all its jobs. A JCT that changes by c changes the utilisation by 1 / (1 + c).
    """
    kinds = tuple(bar.jct)
    share = np.array([gpus[kind] for kind in kinds], float) / sum(gpus.values())
    faster = np.array([1 / (1 + bar.jct[kind]) for kind in kinds])
    without = np.linalg.solve(np.array([share, share * faster]), np.array([bar.without, bar.crux]))
    return dict(zip(kinds, without, strict=True)), dict(zip(kinds, without * faster, strict=True))


def reproduce(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per group of bars, and one for the inputs that come nearest to all."""
    bars = [bar for figure in ("crux-fig21", "crux-fig22") for bar in FIGURES[figure]]
    tasks = [(bar.scenario, point) for bar in bars for point in (FITTED, *grid())]
    found: dict[str, dict[FigureInputs, Pair]] = {bar.scenario: {} for bar in bars}
    with started(settings.processes, lambda pool: pool) as pool:
        progress.phase("flow engine", len(tasks))
        for number, ((scenario, point), pair) in enumerate(zip(tasks, pool.map(shared, tasks), strict=True), 1):
            if pair is not None:
                found[scenario][point] = pair
            progress.advance_to(number)
    rows: list[PaperRow] = []
    off: dict[str, Distances] = {}
    for bar in bars:
        (gpus, alone), own = by_itself(bar.scenario), found[bar.scenario]
        off[bar.scenario] = {point: distances(bar, gpus, pair) for point, pair in own.items()}
        paper, here = slowdowns(alone, implied(bar, gpus)), slowdowns(alone, own[FITTED])
        rows.append(_row(bar, paper, here, off[bar.scenario]))
    return [*rows, nearest_to_all(off)]


def grid() -> Iterable[FigureInputs]:
    """Overlaps of BERT and ResNet, and connections per pair of ports; no GPT runs in these figures."""
    for bert, resnet, channels in product(OVERLAPS, OVERLAPS, CHANNELS):
        yield replace(FITTED, bert_overlap=bert, resnet_overlap=resnet, channels=channels)


def by_itself(scenario: str) -> tuple[Mapping[str, int], Utilizations]:
    """Return kind -> GPUs of all its jobs, and their utilisations alone, which all inputs have in common."""
    jobs = _computed(scenario, "ideal", FITTED, SEEDS[0])
    gpus = {kind: sum(count for job, (count, _, _) in jobs.items() if job.startswith(kind)) for kind in KINDS}
    return gpus, _by_kind([jobs])


def shared(task: tuple[str, FigureInputs]) -> Pair | None:
    """Return the utilisations by the flow engine, means over the seeds; None if a job is left too little to measure."""
    scenario, inputs = task
    try:
        without, crux = (
            _by_kind([_computed(scenario, scheduler, inputs, seed) for seed in SEEDS]) for scheduler in ("ecmp", "crux")
        )
    except RunFailedError:
        return None
    return without, crux


def slowdowns(alone: Utilizations, pair: Pair) -> dict[str, float]:
    """Return how much longer than alone iterations are: ``bert_without``, ``bert_crux`` ..."""
    sides = zip(("without", "crux"), pair, strict=True)
    return {f"{kind}_{side}": alone[kind] / busy[kind] - 1 for side, busy in sides for kind in KINDS}


def distances(bar: Bar, gpus: Mapping[str, int], pair: Pair) -> tuple[float, float]:
    """Return how many points the utilisations of all GPUs are off the two bars."""
    without, crux = (sum(gpus[kind] * busy[kind] for kind in KINDS) / sum(gpus.values()) for busy in pair)
    return 100 * (without - bar.without), 100 * (crux - bar.crux)


def nearest_to_all(off: Mapping[str, Distances]) -> PaperRow:
    """The one point that comes nearest to the bars of all scenarios, and its distances (root mean square)."""
    common = set.intersection(*(set(own) for own in off.values()))
    squares = {point: np.square([own[point] for own in off.values()]).mean(axis=0) for point in common}
    nearest = min(squares, key=lambda point: (float(squares[point].sum()), _in_words(point)))
    without, crux = np.sqrt(squares[nearest]).tolist()
    here = {"nearest_without": without, "nearest_crux": crux}
    return PaperRow("one point for all", {}, here, _in_words(nearest), fitted=tuple(here), calibrated_on=CALIBRATED_ON)


def _row(bar: Bar, paper: Mapping[str, float], here: Mapping[str, float], off: Distances) -> PaperRow:
    nearest = min(off, key=lambda point: max(map(abs, off[point])))
    without, crux = off[nearest]
    near = {"nearest_without": without, "nearest_crux": crux}
    note = f"nearest: {_in_words(nearest)}"
    return PaperRow(bar.label, paper, {**here, **near}, note, fitted=tuple(near), calibrated_on=CALIBRATED_ON)


def _computed(scenario: str, scheduler: str, inputs: FigureInputs, seed: int) -> Jobs:
    return computed(scenario, scheduler, overrides(scenario, inputs), seed)


def _by_kind(runs: Sequence[Jobs]) -> Utilizations:
    """Kind -> utilisation, mean over ``runs``; all jobs of a kind have as many GPUs."""
    return {
        kind: fmean(busy for jobs in runs for job, (_, busy, _) in jobs.items() if job.startswith(kind))
        for kind in KINDS
    }


def _in_words(point: FigureInputs) -> str:
    overlaps = f"overlap of BERT {point.bert_overlap:g}, of ResNet {point.resnet_overlap:g}"
    return f"{overlaps}, channels: {point.channels}"
