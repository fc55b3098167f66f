"""Figure 16 of Crux: what each mechanism reaches on small cases, against the best and worst by enumeration."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from types import MappingProxyType
from typing import Final

from testbed.fluid.periodic import TOLERANCE
from testbed.progress import Progress
from testbed.reproduce.crux import figure_16_cases, figure_16_population
from testbed.reproduce.crux.figure_16_cases import JOBS, LEVELS, Case
from testbed.reproduce.crux.figure_16_mechanisms import (
    Paths,
    compressions,
    crux_paths,
    intensities,
    orders,
    taccl_star_paths,
)
from testbed.reproduce.crux.figure_16_optimum import PathChoices, Yardstick, assignments
from testbed.reproduce.paper_experiment import PaperRow, Settings
from testbed.reproduce.process_pool import each_case

PAPER: Final[Mapping[str, float]] = MappingProxyType(
    {
        "path-selection crux": 0.9769,
        "path-selection taccl-star": 0.957,
        "assignment crux": 0.9724,
        "assignment taccl-star": 0.831,
        "assignment sincronia": 0.761,
        "assignment varys": 0.422,
        "compression crux": 0.9712,
        "compression sincronia": 0.782,
    }
)
"""Mechanism and scheduler -> mean performance. Those of Crux are printed; the others are the means of the curves as
read off the figure."""

GENERATORS: Final[Mapping[str, Callable[[int, int], Case]]] = MappingProxyType(
    {"independent": figure_16_cases.generate, "population": figure_16_population.generate}
)
"""Name -> what makes the case of a seed and an index."""
CALIBRATED_ON: Final[Mapping[str, str]] = MappingProxyType(
    {"population": "GPT, BERT and ResNet alone, to the Ideal bars of figure 20"}
)
A_PRIORI: Final = "independent"
"""The generator that was chosen before anything was compared with the figure."""

NOTES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "assignment taccl-star": "distance in hops; ties by arrival",
        "assignment taccl-star, cost": "distance in seconds",
        "assignment sincronia": "ports are host links",
        "assignment sincronia, all links": "ports are all links of the paths",
        "compression varys": "ranks split evenly, figure 13",
        "path-selection random": "any path, evenly",
        "assignment random": "any order, evenly",
        "compression random": "any valid levels, evenly",
        "end-to-end crux": "paths, order and levels together",
        "end-to-end sincronia": "random paths",
        "end-to-end varys": "random paths",
        "end-to-end ecmp": "random paths, one level",
    }
)

RANDOM: Final = "random"
"""Paths, an order or valid levels drawn evenly from all."""
ECMP: Final = "ecmp"
"""Random paths, one level."""
COMPRESSION_OF: Final[Mapping[str, str]] = MappingProxyType(
    {"crux": "crux", "taccl-star": "sincronia", "sincronia": "sincronia", "varys": "varys"}
)
"""Scheduler -> whose rule puts its order on levels; TACCL* too gives the first K - 1 jobs a level each."""

CONFIDENCE: Final = 1.96
"""Standard errors on either side of a 95 % confidence interval."""


def reproduce(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per generator, mechanism and scheduler; shares of 1."""
    summaries = {
        generator: _summaries(each_case(partial(scores, generator), settings, progress)) for generator in GENERATORS
    }
    return [
        PaperRow(
            f"{generator}: {label}",
            {"performance": PAPER[label]} if label in PAPER else {},
            here,
            _note(label),
            calibrated_on=CALIBRATED_ON.get(generator, ""),
            a_priori=summaries[A_PRIORI][label] if generator != A_PRIORI else {},
        )
        for generator, labels in summaries.items()
        for label, here in labels.items()
    ]


def _summaries(cases: Sequence[Mapping[str, Score]]) -> dict[str, dict[str, float]]:
    return {label: summarise([case[label] for case in cases]) for label in cases[0]}


def _note(label: str) -> str:
    read = "" if label not in PAPER or label.endswith(" crux") else "paper: read off the curve"
    return "; ".join(part for part in (NOTES.get(label, ""), read) if part)


@dataclass(frozen=True, slots=True)
class Score:
    """GPU utilisation ``found``, and the ``best`` and ``worst`` of the enumeration that it belongs to."""

    found: float
    best: float
    worst: float

    @property
    def error(self) -> float:
        """Relative error against the optimum."""
        return (self.best - self.found) / self.best

    @property
    def share_lost(self) -> float | None:
        """Its position between best (0) and worst (1); None if they are equal up to the tolerance."""
        if self.best - self.worst < TOLERANCE * self.best:
            return None
        return (self.best - self.found) / (self.best - self.worst)


def scores(generator: str, seed: int, index: int) -> dict[str, Score]:
    """Return label (mechanism and scheduler) -> score for case ``index`` of ``seed`` of a generator."""
    case = GENERATORS[generator](seed, index)
    choices = case.choices()
    yardstick = Yardstick(choices)
    random = Random(f"crux-fig16-random/{seed}/{index}")
    any_paths = tuple(random.randrange(len(choice.candidates)) for choice in choices)
    return {
        **_path_scores(case, choices, yardstick, any_paths),
        **_order_and_level_scores(case, choices, yardstick, seed, random),
        **_joint_scores(case, choices, yardstick, seed, any_paths),
    }


def _path_scores(
    case: Case, choices: Sequence[PathChoices], yardstick: Yardstick, any_paths: Paths
) -> dict[str, Score]:
    """Paths of each scheduler, with the best levels for them."""
    best, worst = yardstick.best_paths(LEVELS)[0], yardstick.worst_paths(LEVELS)[0]
    found = {"crux": crux_paths(case, choices), "taccl-star": taccl_star_paths(choices), RANDOM: any_paths}
    return {
        f"path-selection {scheduler}": Score(yardstick.best_levels(paths, LEVELS)[0], best, worst)
        for scheduler, paths in found.items()
    }


def _order_and_level_scores(
    case: Case, choices: Sequence[PathChoices], yardstick: Yardstick, seed: int, random: Random
) -> dict[str, Score]:
    """Orders of each scheduler on the best paths, a level per job; levels of each scheduler from the best order."""
    found: dict[str, Score] = {}
    optimal = yardstick.best_paths(0)[1]
    (best, ranks), worst = yardstick.best_order(optimal), yardstick.worst_order(optimal)[0]
    any_order = tuple(random.sample(range(JOBS), JOBS))
    for scheduler, order in {**orders(case, choices, optimal), RANDOM: any_order}.items():
        levels = tuple(order.index(job) for job in range(JOBS))
        found[f"assignment {scheduler}"] = Score(yardstick.utilization(optimal, levels), best, worst)

    strength = intensities(case, optimal)
    best_order = linear_order(ranks, yardstick.pairs(optimal), [strength[job.name] for job in case.jobs])
    valid = list(valid_levels(ranks, yardstick.pairs(optimal)))
    values = [yardstick.utilization(optimal, levels) for levels in valid]
    chosen = {**compressions(case, optimal, best_order, seed), RANDOM: random.choice(valid)}
    for scheduler, levels in chosen.items():
        value = yardstick.utilization(optimal, levels)
        found[f"compression {scheduler}"] = Score(value, max(values), min(values))
    return found


def _joint_scores(
    case: Case, choices: Sequence[PathChoices], yardstick: Yardstick, seed: int, any_paths: Paths
) -> dict[str, Score]:
    """Paths, order and levels of each scheduler together, against the best and worst of all paths and levels."""
    best, worst = yardstick.best_paths(LEVELS)[0], yardstick.worst_levels_and_paths(LEVELS)
    chosen: dict[str, tuple[Paths, Paths]] = {}
    own_paths = {"crux": crux_paths(case, choices), "taccl-star": taccl_star_paths(choices)}
    for scheduler, compression in COMPRESSION_OF.items():
        paths = own_paths.get(scheduler, any_paths)
        order = orders(case, choices, paths)[scheduler]
        chosen[scheduler] = paths, compressions(case, paths, order, seed)[compression]
    chosen[ECMP] = any_paths, (0,) * JOBS
    return {
        f"end-to-end {scheduler}": Score(yardstick.utilization(paths, levels), best, worst)
        for scheduler, (paths, levels) in chosen.items()
    }


def linear_order(ranks: Sequence[int], pairs: Sequence[tuple[int, int]], strength: Sequence[float]) -> list[int]:
    """Return the jobs so that of each of the ``pairs`` the lower of ``ranks`` comes first; else the stronger does."""
    above = {job: {one if two == job else two for one, two in pairs if job in (one, two)} for job in range(len(ranks))}
    above = {job: {other for other in others if ranks[other] < ranks[job]} for job, others in above.items()}
    order: list[int] = []
    while len(order) < len(ranks):
        ready = [job for job in above if job not in order and above[job] <= set(order)]
        order.append(max(ready, key=lambda job: (strength[job], -job)))
    return order


def valid_levels(ranks: Sequence[int], pairs: Sequence[tuple[int, int]]) -> Iterator[tuple[int, ...]]:
    """Every assignment of jobs to :data:`LEVELS` levels that reverses none of the ``pairs`` (Crux section 4.3)."""
    downward = [(one, two) if ranks[one] < ranks[two] else (two, one) for one, two in pairs]
    for levels in assignments(len(ranks), LEVELS):
        if all(levels[higher] <= levels[lower] for higher, lower in downward):
            yield levels


def summarise(of_cases: Sequence[Score]) -> dict[str, float]:
    """Return the numbers of a row: see docs/reference/reproduce.md. ``ValueError`` for no cases."""
    if not of_cases:
        raise ValueError("no cases to summarise")
    errors = sorted(score.error for score in of_cases)
    count, mean = len(errors), sum(errors) / len(errors)
    variance = sum((error - mean) ** 2 for error in errors) / max(1, count - 1)
    lost = [share for score in of_cases if (share := score.share_lost) is not None]
    return {
        "performance": 1 - mean,
        "spread": CONFIDENCE * math.sqrt(variance / count),
        "median_error": errors[count // 2],
        "p90_error": errors[min(count - 1, int(0.9 * count))],
        "max_error": errors[-1],
        "optimal": sum(error <= TOLERANCE for error in errors) / count,
        **({"of_range": 1 - sum(lost) / len(lost), "decided_cases": len(lost)} if lost else {"decided_cases": 0}),
    }
