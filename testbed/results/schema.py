"""The version of a run directory's JSON files, and how those of version 1 say it in the keys of today. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from testbed.metrics.old_keys import upgrade_summary

SCHEMA_VERSION: Final = 2
"""Of ``summary.json``, ``experiment.json`` and ``run.json``."""

ANY: Final = "*"
"""Any item of a list."""

EXPERIMENT_KEYS: Final[Mapping[tuple[str, ...], str]] = {
    ("fabric", "inside"): "pcie_queues",
    ("measure", "limit_s"): "time_limit_s",
    ("failures",): "link_failures",
    ("managed", "fates"): "job_failures",
    ("managed", "job_failures", "end_at"): "early_stop_at",
    ("managed", "submissions", ANY, "least_gpus"): "min_gpus",
    ("managed", "submissions", ANY, "most_gpus"): "max_gpus",
    ("managed", "submissions", ANY, "spec", "packed_with"): "share_gpus_with",
}
"""Place of a key in ``experiment.json`` of version 1 -> its name of today; a key above it is renamed before."""


RUN_KEYS: Final[Mapping[tuple[str, ...], str]] = {("managed", "outcomes", ANY, "moves"): "migrations"}
"""The same for ``run.json``."""


def summary_today(document: dict[str, Any]) -> dict[str, Any]:
    """``summary.json`` of any version in the keys of today; ``ValueError`` for a version from the future."""
    if not _is_of_today(document):
        document = {**upgrade_summary(document), "schema_version": SCHEMA_VERSION}
    return _without_old_losses(document)


def _without_old_losses(document: dict[str, Any]) -> dict[str, Any]:
    """Without the losses of runs before version 0.3: what a job lost alone stood there as lost to other jobs."""
    runs = document.get("runs", [])
    entries = [*runs, *(job for run in runs if isinstance(run, dict) for job in run.get("jobs") or ())]
    for entry in entries:
        loss = entry.get("loss") if isinstance(entry, dict) else None
        if isinstance(loss, dict) and "alone_points" not in loss:
            entry["loss"] = None
            for against in document.get("comparison", {}).values():
                if isinstance(against, dict):
                    against.pop("gain_split", None)
    return document


def experiment_today(document: dict[str, Any]) -> dict[str, Any]:
    """``experiment.json`` of any version in the keys of today, without its version; ``ValueError`` likewise."""
    found = _renamed(document, EXPERIMENT_KEYS)
    if "link_failures" in found:  # until version 0.4
        found["failures"] = [{"part": each.pop("link"), **each} for each in found.pop("link_failures")]
    return {key: value for key, value in found.items() if key != "schema_version"}


def run_today(document: dict[str, Any]) -> dict[str, Any]:
    """``run.json`` of any version in the keys of today; ``ValueError`` likewise."""
    return _renamed(document, RUN_KEYS)


def _renamed(document: dict[str, Any], keys: Mapping[tuple[str, ...], str]) -> dict[str, Any]:
    if not _is_of_today(document):
        for place, new in keys.items():
            for holder in _mappings(document, place[:-1]):
                if place[-1] in holder:
                    holder[new] = holder.pop(place[-1])
    return document


def _is_of_today(document: Mapping[str, Any]) -> bool:
    """Whether it is of this version; what has none is of the first, in which only summaries had one."""
    version = document.get("schema_version", 1)
    if version not in (1, SCHEMA_VERSION):
        raise ValueError(f"schema_version {version!r}")
    return bool(version == SCHEMA_VERSION)


def _mappings(document: Any, place: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The objects that ``place`` leads to."""
    if not place:
        if isinstance(document, dict):
            yield document
    elif place[0] == ANY:
        for item in document if isinstance(document, list) else ():
            yield from _mappings(item, place[1:])
    elif isinstance(document, dict):
        yield from _mappings(document.get(place[0]), place[1:])
