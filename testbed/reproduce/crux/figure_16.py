"""Figure 16 of Crux: what each mechanism reaches on small cases, against the best and worst by enumeration."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from testbed.fluid.periodic import TOLERANCE
from testbed.progress import Progress
from testbed.reproduce.crux.figure_16_cases import JOBS, LEVELS, generate
from testbed.reproduce.crux.figure_16_mechanisms import compressions, crux_paths, intensities, orders, taccl_star_paths
from testbed.reproduce.crux.figure_16_optimum import Yardstick, assignments
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
"""Mean performance. Those of Crux are printed; the others are the means of the curves as read off the figure."""

NOTES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "assignment taccl-star": "distance in hops; ties by arrival",
        "assignment taccl-star, cost": "distance in seconds",
        "assignment sincronia": "ports are host links",
        "assignment sincronia, all links": "ports are all links of the paths",
        "compression varys": "ranks split evenly, figure 13",
    }
)

CONFIDENCE: Final = 1.96
"""Standard errors on either side of a 95 % confidence interval."""


def reproduce(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per mechanism and scheduler; shares of 1."""
    cases = each_case(scores, settings, progress)
    return [
        PaperRow(
            label,
            {"performance": PAPER[label]} if label in PAPER else {},
            summarise([case[label] for case in cases]),
            _note(label),
        )
        for label in cases[0]
    ]


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


def scores(seed: int, index: int) -> dict[str, Score]:
    """Return label (mechanism and scheduler) -> score for case ``index`` of ``seed``."""
    case = generate(seed, index)
    choices = case.choices()
    yardstick = Yardstick(choices)
    found: dict[str, Score] = {}

    best, worst = yardstick.best_paths(LEVELS)[0], yardstick.worst_paths(LEVELS)[0]
    for scheduler, paths in (("crux", crux_paths(case, choices)), ("taccl-star", taccl_star_paths(choices))):
        found[f"path-selection {scheduler}"] = Score(yardstick.best_levels(paths, LEVELS)[0], best, worst)

    optimal = yardstick.best_paths(0)[1]
    (best, ranks), worst = yardstick.best_order(optimal), yardstick.worst_order(optimal)[0]
    for scheduler, order in orders(case, choices, optimal).items():
        levels = tuple(order.index(job) for job in range(JOBS))
        found[f"assignment {scheduler}"] = Score(yardstick.utilization(optimal, levels), best, worst)

    strength = intensities(case, optimal)
    best_order = linear_order(ranks, yardstick.pairs(optimal), [strength[job.name] for job in case.jobs])
    valid = [yardstick.utilization(optimal, levels) for levels in valid_levels(ranks, yardstick.pairs(optimal))]
    for scheduler, levels in compressions(case, optimal, best_order, seed).items():
        value = yardstick.utilization(optimal, levels)
        found[f"compression {scheduler}"] = Score(value, max(valid), min(valid))
    return found


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
