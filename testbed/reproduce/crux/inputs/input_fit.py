"""Inputs that figures 19 to 22 of Crux leave open, fitted to their ten bars without Crux and to nothing else.

Five inputs are shared by all figures: the overlaps of BERT and ResNet, GPT's hidden share, the connections per pair
of ports, and ResNet's compute, since in figures 21 and 22 the ratio of two periods decides whether a job that another
one delays meets it again in each iteration. Placement, fabric and isolated utilisations (each figure's own Ideal bars)
stay as they are. Utilisation under ECMP comes from the flow engine, which simulates the packets of an emulation, as the
mean over hash seeds that no emulation uses. The loss is the mean of the squared differences to the bars.

The grid is searched in two steps: every point with :data:`FEW` seeds and without figure 20, whose runs take longest;
then the points whose loss is at most :data:`KEPT` times the least, and at least :data:`LEAST_KEPT` of them, with all
:data:`SEEDS` seeds and all bars. A point is left out if its nine bars alone are more than :data:`NEAR` times the least
loss of ten: the tenth cannot bring it back. Of the points within :data:`NEAR` of the least loss the one with the fewest
channels is taken, and of those the one of least loss: the bars do not tell them apart, and with fewer connections each
has more packets. Runs are kept in ``OUT/crux-calibration-runs.json``, so that a second call resumes, for as long as
neither the code that computes them nor a scenario has changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from functools import cache
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Final

from testbed.machine.distribution import sources_digest
from testbed.machine.process_pool import started
from testbed.metrics.formats import points_between
from testbed.progress import Progress
from testbed.reproduce.crux.inputs.bars_without_crux import WITHOUT_CRUX
from testbed.reproduce.crux.inputs.figure_runs import computed, mean_utilization, overrides
from testbed.reproduce.paper_experiment import PaperRow, Settings
from testbed.scenario.loading import text_of
from topologies.limits import RUN_FILE_BYTES, read_text
from workloads.models.figure_calibration import FigureInputs
from workloads.whole_file import write_whole

OVERLAPS: Final = (0.0, 0.125, 0.25, 0.5)
HIDDEN_SHARES: Final = (1 / 9, 2 / 9, 1 / 3, 1 / 2)
CHANNELS: Final = (1, 2, 4, 8)
RESNET_COMPUTES_S: Final = (0.175, 0.25, 0.35, 0.5)
"""Steps of a factor of 1.4 around what was chosen a priori, all shorter than BERT's 0.6."""
SEEDS: Final = range(101, 121)
FEW: Final = 2
KEPT: Final = 2.0
LEAST_KEPT: Final = 8
NEAR: Final = 1.1
"""Losses up to this multiple of the least count as near it."""
FIGURES: Final = ("crux-fig19", "crux-fig20", "crux-fig21", "crux-fig22")
TEN_BARS: Final = "the ten bars without Crux"
OTHER_BARS: Final = "the bars without Crux of the other figures"
_COMPUTED_BY: Final = (
    *("topologies", "workloads", "controller", "testbed.engines", "testbed.experiment", "testbed.fluid"),
    *("testbed.metrics", "testbed.packets", "testbed.scenario", "testbed.reproduce.crux.inputs"),
)

Task = tuple[str, FigureInputs, int]
"""Scenario, inputs, hash seed."""
Found = dict[Task, float]


def grid() -> tuple[FigureInputs, ...]:
    """All points."""
    return tuple(
        FigureInputs(*point) for point in product(OVERLAPS, OVERLAPS, HIDDEN_SHARES, CHANNELS, RESNET_COMPUTES_S)
    )


def seen(scenario: str, inputs: FigureInputs) -> FigureInputs:
    """``inputs`` with what the jobs of ``scenario`` do not have set to the first of the grid: points share its runs."""
    if scenario.startswith("crux-fig19"):
        return replace(inputs, resnet_overlap=OVERLAPS[0], resnet_compute_s=RESNET_COMPUTES_S[0])
    if scenario.startswith("crux-fig20"):
        return inputs
    return replace(inputs, gpt_hidden_share=HIDDEN_SHARES[0])


def utilization(task: Task) -> float:
    """GPU utilisation under ECMP."""
    scenario, inputs, seed = task
    return mean_utilization(computed(scenario, "ecmp", overrides(scenario, inputs), seed))


@cache
def computed_by() -> str:
    """A hash of the code that computes a run, and of the scenarios: runs of another one are not reused."""
    texts = [text_of(scenario)[0] for scenario in WITHOUT_CRUX]
    return hashlib.sha256("\n".join([sources_digest(*_COMPUTED_BY), *texts]).encode()).hexdigest()


class Surface:
    """The losses of points of the grid, computed as they are asked for."""

    def __init__(self, compute: Callable[[Sequence[Task]], Iterable[float]], kept: Path | None = None) -> None:
        """``compute`` runs tasks; what was run is read from the file ``kept``, and written there."""
        self._compute = compute
        self._kept = kept
        self._found: Found = {} if kept is None else _read(kept)

    def prepare(self, scenarios: Iterable[str], points: Iterable[FigureInputs], seeds: Iterable[int]) -> None:
        """Compute what is missing for the losses of ``points`` on ``scenarios``. An interrupt keeps the runs it has."""
        wanted = dict.fromkeys(
            (scenario, seen(scenario, point), seed)
            for scenario, point, seed in product(scenarios, points, tuple(seeds))
        )
        missing = [task for task in wanted if task not in self._found]
        if not missing:
            return
        try:
            for task, value in zip(missing, self._compute(missing), strict=True):
                self._found[task] = value
        finally:
            if self._kept is not None:
                _write(self._kept, self._found)

    def bar(self, scenario: str, point: FigureInputs, seeds: Iterable[int]) -> float:
        """Utilisation without Crux, the mean over ``seeds``."""
        return fmean(self._found[scenario, seen(scenario, point), seed] for seed in seeds)

    def loss(self, scenarios: Sequence[str], point: FigureInputs, seeds: Sequence[int]) -> float:
        """Mean squared difference to the bars of ``scenarios``."""
        return fmean((self.bar(each, point, seeds) - WITHOUT_CRUX[each]) ** 2 for each in scenarios)


def _read(path: Path) -> Found:
    """The runs in the file ``path``; none where it is missing or damaged, or of other code."""
    try:
        document = json.loads(read_text(path, RUN_FILE_BYTES))
        if document["computed_by"] != computed_by():
            return {}
        return {(name, FigureInputs(*inputs), seed): value for name, inputs, seed, value in document["runs"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _write(path: Path, found: Found) -> None:
    runs = [[name, astuple(inputs), seed, value] for (name, inputs, seed), value in found.items()]
    write_whole(path, json.dumps({"computed_by": computed_by(), "runs": runs}))


def fit(surface: Surface, scenarios: Sequence[str]) -> dict[FigureInputs, float]:
    """Return point -> loss over ``scenarios`` with all seeds, of the points the first step keeps, the least first."""
    points = grid()
    cheap = [each for each in scenarios if each != "crux-fig20"]
    few = SEEDS[:FEW]
    surface.prepare(cheap, points, few)
    first = sorted(points, key=lambda point: surface.loss(cheap, point, few))
    least = surface.loss(cheap, first[0], few)
    kept = [
        point
        for place, point in enumerate(first)
        if place < LEAST_KEPT or surface.loss(cheap, point, few) <= KEPT * least
    ]
    surface.prepare(cheap, kept, SEEDS)
    kept.sort(key=lambda point: surface.loss(cheap, point, SEEDS))
    if "crux-fig20" not in scenarios:
        return {point: surface.loss(scenarios, point, SEEDS) for point in kept}
    found: dict[FigureInputs, float] = {}
    for point in kept:
        alone = surface.loss(cheap, point, SEEDS) * len(cheap) / len(scenarios)
        if found and alone > NEAR * min(found.values()):
            break
        surface.prepare(["crux-fig20"], [point], SEEDS)
        found[point] = surface.loss(scenarios, point, SEEDS)
    return dict(sorted(found.items(), key=lambda item: item[1]))


def chosen(losses: Mapping[FigureInputs, float]) -> FigureInputs:
    """Return the point that is taken: near the least loss, with the fewest channels."""
    near = [point for point, loss in losses.items() if loss <= NEAR * min(losses.values())]
    return min(near, key=lambda point: (point.channels, losses[point]))


def reproduce(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per bar at the fitted inputs, the losses near the least, and each figure left out of the fit."""
    with started(settings.processes, lambda pool: pool) as pool:

        def compute(tasks: Sequence[Task]) -> Iterable[float]:
            progress.phase(f"{len(tasks)} runs", len(tasks))
            for number, value in enumerate(pool.map(utilization, tasks, chunksize=4), 1):
                progress.advance_to(number)
                yield value

        settings.out.mkdir(parents=True, exist_ok=True)
        surface = Surface(compute, settings.out / "crux-calibration-runs.json")
        every = tuple(WITHOUT_CRUX)
        losses = fit(surface, every)
        best = chosen(losses)
        rows = [_bar(surface, scenario, best) for scenario in every]
        note = "near the least loss of ten bars, fewest channels"
        rows.append(replace(_point("fitted", best, losses[best], TEN_BARS), note=note))
        rows += _near(losses)
        for figure in FIGURES:
            left = [scenario for scenario in every if not scenario.startswith(figure)]
            partly = fit(surface, left)
            point = chosen(partly)
            rows += _left_out(surface, figure, (point, partly[point]))
        return rows


def _point(label: str, point: FigureInputs, loss: float, calibrated_on: str) -> PaperRow:
    """A row with inputs and how far they are off the bars that they are fitted to."""
    here = _here(point, loss)
    return PaperRow(label, {}, here, fitted=tuple(here), calibrated_on=calibrated_on)


def _here(point: FigureInputs, loss: float) -> dict[str, float]:
    return {
        "bert_overlap": point.bert_overlap,
        "resnet_overlap": point.resnet_overlap,
        "gpt_hidden_share": point.gpt_hidden_share,
        "channels": float(point.channels),
        "resnet_compute_s": point.resnet_compute_s,
        "error_points": 100 * loss**0.5,
    }


def _bar(surface: Surface, scenario: str, best: FigureInputs) -> PaperRow:
    here = {"without": surface.bar(scenario, best, SEEDS)}
    paper = {"without": WITHOUT_CRUX[scenario]}
    return PaperRow(scenario, paper, here, fitted=("without",), calibrated_on=TEN_BARS)


def _near(losses: Mapping[FigureInputs, float]) -> list[PaperRow]:
    """The loss surface around its minimum, and how far each input may go within :data:`NEAR` of the least loss."""
    least = min(losses.values())
    near = [point for point, loss in losses.items() if loss <= NEAR * least]
    spans = "; ".join(
        f"{name} {min(values):.3g} to {max(values):.3g}"
        for name, values in (
            ("overlap of BERT", [point.bert_overlap for point in near]),
            ("of ResNet", [point.resnet_overlap for point in near]),
            ("hidden share", [point.gpt_hidden_share for point in near]),
            ("channels", [float(point.channels) for point in near]),
            ("compute of ResNet in s", [point.resnet_compute_s for point in near]),
        )
    )
    rows = [_point(f"point {place}", *found, TEN_BARS) for place, found in enumerate(losses.items(), 1)]
    count = {"points": float(len(near))}
    return [PaperRow("within 10 %", {}, count, spans, fitted=tuple(count), calibrated_on=TEN_BARS), *rows]


def _left_out(surface: Surface, figure: str, found: tuple[FigureInputs, float]) -> list[PaperRow]:
    """The inputs without ``figure``, and its bars by them."""
    point, loss = found
    rows = [_point(f"without {figure}", point, loss, OTHER_BARS)]
    own = [scenario for scenario in WITHOUT_CRUX if scenario.startswith(figure)]
    surface.prepare(own, [point], SEEDS)
    for scenario in own:
        here = {"without": surface.bar(scenario, point, SEEDS)}
        note = f"left out: {points_between(WITHOUT_CRUX[scenario], here['without'])} points"
        paper = {"without": WITHOUT_CRUX[scenario]}
        rows.append(PaperRow(f"{scenario}, left out", paper, here, note, calibrated_on=OTHER_BARS))
    return rows
