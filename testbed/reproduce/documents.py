"""The rows of an experiment as a document: what ``--json`` prints and what ``reproduce all`` keeps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from testbed.machine.distribution import package_version
from testbed.reproduce.paper_experiment import PaperRow
from testbed.results.run_directory import RunDirectory


def document(name: str, command: str, rows: Sequence[PaperRow]) -> dict[str, Any]:
    """Return what ``--json`` prints; ``command`` computes the same rows again."""
    listed = [{"label": row.label, "paper": dict(row.paper), "here": dict(row.here), "note": row.note} for row in rows]
    return {"name": name, "command": command, "rows": listed}


def write(out: Path, name: str, command: str, rows: Sequence[PaperRow]) -> dict[str, Any]:
    """Write the document to ``OUT/<name>.json``, with the version of this package; returns it."""
    found = document(name, command, rows)
    out.mkdir(parents=True, exist_ok=True)
    RunDirectory(out).write_json(f"{name}.json", found | {"version": package_version()})
    return found


def kept(out: Path, name: str, command: str) -> list[PaperRow] | None:
    """Return the rows kept under ``out`` if they are of the same command and version; else None."""
    try:
        found = json.loads((out / f"{name}.json").read_text("utf-8"))
        if found["command"] != command or found["version"] != package_version():
            return None
        return [PaperRow(row["label"], row["paper"], row["here"], row["note"]) for row in found["rows"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None
