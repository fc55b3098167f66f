"""Every notebook in the documents runs from its first cell to its last, and shows what it shows in the documents."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))


def texts_of(notebook: nbformat.NotebookNode) -> list[str]:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [output["data"]["text/plain"] for output in outputs if "data" in output]


def pictures_of(notebook: nbformat.NotebookNode) -> int:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return sum("image/png" in output.get("data", ()) for output in outputs)


def test_there_is_a_notebook() -> None:
    assert [path.name for path in NOTEBOOKS] == ["first_figure.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])
def test_a_notebook_draws_its_figure_anew(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To renew what it shows: ``jupyter execute --inplace docs/examples/notebooks/first_figure.ipynb``."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep))
    kept = nbformat.read(path, as_version=4)
    ran = nbformat.read(path, as_version=4)
    NotebookClient(ran, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert pictures_of(ran) == pictures_of(kept) > 0
    assert texts_of(ran) == texts_of(kept)
