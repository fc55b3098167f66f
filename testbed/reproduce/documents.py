"""The rows of an experiment as a document: what ``--json`` prints and what ``reproduce all`` keeps."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from testbed.machine.distribution import package_version, sources_digest
from testbed.reproduce.paper_experiment import PaperRow
from testbed.results.run_directory import RunDirectory

_PACKAGES: Final = ("topologies", "workloads", "controller", "testbed")


def document(name: str, command: str, rows: Sequence[PaperRow]) -> dict[str, Any]:
    """Return what ``--json`` prints; ``command`` computes the same rows again."""
    return {"name": name, "command": command, "rows": [_listed(row) for row in rows]}


def _listed(row: PaperRow) -> dict[str, Any]:
    return {
        "label": row.label,
        "paper": dict(row.paper),
        "here": dict(row.here),
        "predicted": row.predicted,
        "fitted": list(row.fitted),
        "a_priori": dict(row.a_priori),
        "calibrated_on": row.calibrated_on,
        "note": row.note,
    }


def _read(listed: dict[str, Any]) -> PaperRow:
    return PaperRow(
        listed["label"],
        listed["paper"],
        listed["here"],
        listed["note"],
        fitted=tuple(listed["fitted"]),
        calibrated_on=listed["calibrated_on"],
        a_priori=listed["a_priori"],
    )


def write(out: Path, name: str, command: str, rows: Sequence[PaperRow]) -> dict[str, Any]:
    """Write the document to ``OUT/<name>.json``, with the version and a hash of this package; returns it."""
    found = document(name, command, rows)
    out.mkdir(parents=True, exist_ok=True)
    RunDirectory(out).write_json(f"{name}.json", found | {"version": package_version(), "code": _code()})
    return found


def kept(out: Path, name: str, command: str) -> list[PaperRow] | None:
    """Return the rows kept under ``out`` if they are of the same command and the same code; else None."""
    try:
        found = json.loads((out / f"{name}.json").read_text("utf-8"))
        if found["command"] != command or found["code"] != _code():
            return None
        return [_read(row) for row in found["rows"]]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _code() -> str:
    return sources_digest(*_PACKAGES)
