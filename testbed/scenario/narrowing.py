"""Other schedulers than the file's, on the command line or in a sweep: which entries they mean, which checks remain."""

from __future__ import annotations

from collections.abc import Mapping

from testbed.metrics.checks import CheckError, parse_check
from testbed.scenario.document import Document


def own_entries(data: object) -> Mapping[str, object]:
    """Label -> entry under ``schedulers`` of a scenario as parsed; what has no label is left to validation."""
    entries = _list(data.get("schedulers")) if isinstance(data, dict) else []
    labelled = ((_label(entry), entry) for entry in entries)
    return {label: entry for label, entry in labelled if isinstance(label, str)}


def scheduler_labels(data: object) -> frozenset[str]:
    """The labels under ``schedulers`` of a scenario as parsed."""
    return frozenset(own_entries(data))


def take_own_entries(document: Document, own: Mapping[str, object]) -> None:
    """Where an override names a scheduler and nothing else, take the entry of this label that was there before it.

    So ``--scheduler no-priorities`` is the scenario's scheduler of that label, with its options.
    """
    data = document.data
    entries = _list(data.get("schedulers")) if isinstance(data, dict) else []
    for index, entry in enumerate(entries):
        if isinstance(entry, str) and entry in own and isinstance(document.origin(("schedulers", index)), str):
            entries[index] = own[entry]


def leave_out_checks(document: Document, before: frozenset[str]) -> None:
    """Remove the file's own checks that name a scheduler which was there ``before`` overrides and is not now.

    Those about the ``comparison`` go too: what it compares has changed.
    """
    data = document.data
    gone = before - scheduler_labels(data)
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


def _label(entry: object) -> object:
    return entry.get("label") or entry.get("name") if isinstance(entry, dict) else entry


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _names(text: object, schedulers: frozenset[str]) -> bool:
    try:
        names = parse_check(str(text)).names
    except CheckError:
        return False
    # A comparison is with the baseline, which may be the one that is gone.
    return any(name.partition(".")[0] in (*schedulers, "comparison") for name in names)
