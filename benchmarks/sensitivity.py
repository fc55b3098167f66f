"""What the one free choice of ``clos96`` does: how much communication GPT hides behind its compute. Analytic."""

from __future__ import annotations

from typing import Final

from benchmarks.common import Line, main
from workloads.models.calibration import CALIBRATED, sensitivity

TITLE: Final = "GPT's hidden share (communication / compute, alone) and its utilisation when contention slows it"
JOB: Final = "crux-gpt"


def measure(quick: bool) -> list[Line]:
    """A row per hidden share; nothing is run."""
    chosen = CALIBRATED[JOB]
    return [
        Line(
            {
                "hidden share": row.hidden_share,
                "alone": f"{row.alone:.1%}",
                "communication twice as long": f"{row.slowed_2x:.1%}",
                "three times as long": f"{row.slowed_3x:.1%}",
            },
            note="chosen" if row.hidden_share == chosen.hidden_share else "",
        )
        for row in sensitivity(chosen.overlap)
    ]


if __name__ == "__main__":
    raise SystemExit(main(TITLE, measure))
