"""Figure 16 of Crux: path selection, priority assignment and compression, each against the optimum."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from testbed.progress import Progress
from testbed.reproduce.experiment import Column, PaperRow, Settings, each_case
from testbed.reproduce.forms import fine_percent

SUMMARY: Final = "each mechanism of Crux against the optimum of small generated cases"
SOURCE: Final = "Cao et al., SIGCOMM 2024, section 4.4, figure 16"
CASES: Final = 1500

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


COLUMNS: Final = (
    Column("performance", "paper %", fine_percent, paper=True),
    Column("performance", "here %", fine_percent),
    Column("spread", "+-", fine_percent),
    Column("of_range", "range %", fine_percent),
    Column("median_error", "p50 err", fine_percent),
    Column("p90_error", "p90", fine_percent),
    Column("max_error", "max", fine_percent),
    Column("optimal", "opt %", fine_percent),
)


def run(settings: Settings, progress: Progress) -> Sequence[PaperRow]:
    """Return a row per mechanism and scheduler; shares of 1."""
    from testbed.reproduce.fig16.scoring import scores, summarise

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
