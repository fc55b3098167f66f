"""What was fitted to the paper is told apart from what is predicted: in documents and in the printed table."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.reproduce import documents
from testbed.reproduce.command import _calibrations, _cell
from testbed.reproduce.documents import document, kept, write
from testbed.reproduce.number_formats import percent
from testbed.reproduce.paper_experiment import PaperColumn, PaperRow

ROW = PaperRow(
    "GPT-32",
    {"without": 0.759, "crux": 0.842},
    {"without": 0.76, "crux": 0.85, "gain_points": 9.0},
    fitted=("without",),
    calibrated_on="without: the ten bars without Crux",
    a_priori={"without": 0.636, "crux": 0.85},
)


@pytest.mark.parametrize(
    ("paper", "here", "fitted", "predicted"),
    [
        ({"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 1.0}, ("a",), True),
        ({"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 1.0}, ("a", "b"), False),
        ({"a": 1.0}, {"a": 1.0, "detail": 2.0}, ("a",), False),
        ({"a": 1.0}, {"a": 1.0}, (), True),
        ({}, {"detail": 2.0}, (), True),
        ({}, {"detail": 2.0}, ("detail",), False),
    ],
)
def test_a_row_predicts_if_it_holds_a_number_that_was_not_fitted(
    paper: dict[str, float], here: dict[str, float], fitted: tuple[str, ...], predicted: bool
) -> None:
    assert PaperRow("row", paper, here, fitted=fitted).predicted == predicted


def test_the_document_says_what_was_fitted_to_what() -> None:
    listed = document("crux-fig19", "command", [ROW])["rows"][0]
    assert (listed["predicted"], listed["fitted"]) == (True, ["without"])
    assert listed["a_priori"] == {"without": 0.636, "crux": 0.85}
    assert listed["calibrated_on"] == "without: the ten bars without Crux"


def test_kept_rows_are_the_same_rows(tmp_path: Path) -> None:
    write(tmp_path, "crux-fig19", "command", [ROW])
    assert kept(tmp_path, "crux-fig19", "command") == [ROW]


def test_rows_of_other_code_or_of_another_command_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "crux-fig19", "command", [ROW])
    assert kept(tmp_path, "crux-fig19", "another command") is None
    monkeypatch.setattr(documents, "sources_digest", lambda *_packages: "other code")
    assert kept(tmp_path, "crux-fig19", "command") is None


def test_the_table_marks_fitted_numbers_and_nothing_else() -> None:
    paper = PaperColumn("without", "paper", percent, paper=True)
    before = PaperColumn("without", "a priori", percent, a_priori=True)
    assert [_cell(column, ROW) for column in (paper, before)] == ["75.9", "63.6"]
    assert _cell(PaperColumn("without", "here", percent), ROW) == "76.0*"
    assert _cell(PaperColumn("crux", "here", percent), ROW) == "85.0"
    assert _calibrations([ROW, ROW]) == ["* fitted: without: the ten bars without Crux"]
    assert _calibrations([PaperRow("row")]) == []
