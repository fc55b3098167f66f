"""Keys of ``summary.json`` as older versions wrote them -> keys of today. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

JOB_KEYS: Final[Mapping[str, str]] = {"jct_is": "jct_source", "moves": "migrations"}
MANAGER_KEYS: Final[Mapping[str, str]] = {"moves": "migrations"}
"""Key of schema 1 -> key of today, in the entry of a job and in that of a run's manager."""


def upgrade_summary(document: dict[str, Any]) -> dict[str, Any]:
    """Return a summary of schema version 1 with the keys of today, in the same order; ``document`` stays as it is.

    Values do not change, ``schema_version`` included. A summary of today comes back equal.
    """
    runs = document.get("runs")
    if not isinstance(runs, list):
        return dict(document)
    return {**document, "runs": [_run(run) for run in runs]}


def _run(run: object) -> object:
    if not isinstance(run, Mapping):
        return run
    upgraded = dict(run)
    if isinstance(jobs := run.get("jobs"), list):
        upgraded["jobs"] = [_renamed(job, JOB_KEYS) for job in jobs]
    if "manager" in run:
        upgraded["manager"] = _renamed(run["manager"], MANAGER_KEYS)
    return upgraded


def _renamed(entry: object, names: Mapping[str, str]) -> object:
    return {names.get(key, key): value for key, value in entry.items()} if isinstance(entry, Mapping) else entry
