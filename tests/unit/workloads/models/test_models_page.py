"""The tables of docs/reference/models.md are what the code computes."""

from __future__ import annotations

from pathlib import Path

import pytest

from workloads.models.calibration import CALIBRATED, sensitivity
from workloads.models.catalogue import CATALOGUE

PAGE = (Path(__file__).parents[4] / "docs" / "reference" / "models.md").read_text(encoding="utf-8")


def cells(first: str) -> list[list[str]]:
    """Rows of the page's tables that begin with ``first``."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("|")]
    return [row for row in rows if row[0] == first]


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_model_is_listed_with_its_numbers(name: str) -> None:
    model = CATALOGUE[name]
    assert cells(f"`{name}`")[0][2:] == [
        f"{model.parameters / 1e6:,.1f}",
        f"{model.batch:,.0f}",
        f"{model.flops_per_gpu / 1e12:,.2f}",
        f"{model.compute_s * 1e3:,.1f}",
        f"{model.communication_bytes / 1e6:,.1f}",
    ]


@pytest.mark.parametrize("name", CALIBRATED)
def test_a_calibrated_job_is_listed_with_its_choices(name: str) -> None:
    chosen = CALIBRATED[name]
    assert cells(f"`{name}`")[1][1:7] == [
        f"`{chosen.derived_from}`",
        *(
            f"{value:.4g}"
            for value in (
                chosen.compute_s,
                chosen.overlap,
                chosen.utilization,
                chosen.communication_s,
                chosen.gradient_bytes / 1e9,
            )
        ),
    ]


def test_the_sensitivity_of_the_hidden_share_is_listed() -> None:
    for row in sensitivity(CALIBRATED["crux-gpt"].overlap):
        shown = [f"{value:.2f}" for value in (row.hidden_share, row.alone, row.slowed_2x, row.slowed_3x)]
        assert cells(shown[0]) == [shown]
