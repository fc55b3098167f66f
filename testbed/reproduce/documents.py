"""The rows of an experiment as a document: what ``--json`` prints and what ``reproduce all`` keeps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from testbed.reproduce.paper_experiment import PaperRow
from testbed.results.run_directory import RunDirectory


def document(name: str, again: str, rows: Sequence[PaperRow]) -> dict[str, Any]:
    """Return what ``--json`` prints; ``again`` is the command that gives the same rows."""
    listed = [{"label": row.label, "paper": dict(row.paper), "here": dict(row.here), "note": row.note} for row in rows]
    return {"name": name, "command": again, "rows": listed}


def write(out: Path, name: str, again: str, rows: Sequence[PaperRow]) -> dict[str, Any]:
    """Keep the document as ``OUT/<name>.json``, with the version that made it; returns it."""
    found = document(name, again, rows)
    out.mkdir(parents=True, exist_ok=True)
    RunDirectory(out).write_json(f"{name}.json", found | {"version": package_version()})
    return found


def kept(out: Path, name: str, again: str) -> list[PaperRow] | None:
    """Return the rows kept under ``out`` if the same command and version made them."""
    try:
        found = json.loads((out / f"{name}.json").read_text("utf-8"))
        if found["command"] != again or found["version"] != package_version():
            return None
        return [PaperRow(row["label"], row["paper"], row["here"], row["note"]) for row in found["rows"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def package_version() -> str:
    """The version of this package; empty if it is not installed."""
    try:
        return version("testbed")
    except PackageNotFoundError:
        return ""
