"""Fewer schedulers on the command line: the file's checks about the others have nothing to check."""

from __future__ import annotations

from testbed.metrics.checks import CheckError, parse_check
from testbed.scenario.document import Document


def scheduler_names(data: object) -> frozenset[str]:
    """The names under ``schedulers`` of a scenario as parsed; what is no name is left to validation."""
    entries = data.get("schedulers") if isinstance(data, dict) else None
    names = (entry.get("name") if isinstance(entry, dict) else entry for entry in _list(entries))
    return frozenset(name for name in names if isinstance(name, str))


def leave_out_checks(document: Document, before: frozenset[str]) -> None:
    """Remove the file's own checks that name a scheduler which was there ``before`` overrides and is not now.

    Those about the ``comparison`` go too: what it compares has changed.
    """
    data = document.data
    gone = before - scheduler_names(data)
    if not gone or not isinstance(data, dict):
        return
    checks = _list(data.get("checks"))
    lines = {index: document.origin(("checks", index)) for index in range(len(checks))}
    kept = [index for index, text in enumerate(checks) if isinstance(lines[index], str) or not _names(text, gone)]
    for location in [known for known in document.origins if known[:1] == ("checks",) and len(known) > 1]:
        del document.origins[location]
    for place, index in enumerate(kept):
        document.origins["checks", place] = lines[index]
    if len(kept) < len(checks):
        data["checks"] = [checks[index] for index in kept]


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _names(text: object, schedulers: frozenset[str]) -> bool:
    try:
        names = parse_check(str(text)).names
    except CheckError:
        return False
    # A comparison is with the baseline, which may be the one that is gone.
    return any(name.partition(".")[0] in (*schedulers, "comparison") for name in names)
