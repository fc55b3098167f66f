"""Keys of the scenario file that were renamed: old names work for one release, each with a notice on standard error.

They are replaced in the parsed document, before anything is checked, so that the rest of the testbed knows only the
new names and every message still has the line of what was written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from testbed.scenario.document import Document, Location, Problem

ANY: Final = "*"
"""Any item of a list."""

Place = tuple[str, ...]
"""Keys from the top of a scenario, :data:`ANY` for items of lists."""

RENAMED: Final[Mapping[Place, str]] = {
    ("place",): "placement_policy",
    ("link_failures",): "failures",
    ("fabric", "inside"): "pcie_queues",
    ("measure", "limit"): "time_limit",
    ("manager", "fates"): "job_failures",
    ("manager", "job_failures", "end_at"): "early_stop_at",
    ("jobs", ANY, "least_gpus"): "min_gpus",
    ("jobs", ANY, "most_gpus"): "max_gpus",
    ("jobs", ANY, "packed_with"): "share_gpus_with",
}
"""Place of an old key -> its name of today; keys below a renamed one come after it, under its new name."""


@dataclass(frozen=True, slots=True)
class _Change:
    """What is to be said of an old key; ``refused``: its new name is given, too."""

    said: Problem
    refused: bool = False


def rename_old_keys(document: Document, location: Location = (), place: Sequence[str] = ()) -> list[Problem]:
    """Rename what is old under ``location`` of ``document``, which holds what a scenario has at ``place``.

    Tells the user of each key; returns a problem for each that is given under both names.
    """
    changes: list[_Change] = []
    for old, new in RENAMED.items():
        *around, key = old
        if len(place) < len(old) and _matches(place, old[: len(place)]):
            for holder in _mappings(document.at(location), location, around[len(place) :]):
                changes += _rename(document, (*holder, key), new, f"'{key}' is now '{new}'")
    return _told(document, changes)


def rename_dotted(document: Document, location: Location) -> list[Problem]:
    """The same for the key at ``location`` if it is a dotted one of a scenario: it becomes that of today."""
    parts = str(location[-1]).split(".")
    renamed = today(parts)
    return [] if renamed == parts else _told(document, _rename(document, location, ".".join(renamed), _said(parts)))


def today(parts: Sequence[str]) -> list[str]:
    """The parts of a dotted key, such as ``measure.limit``, by the names of today."""
    found: list[str] = []
    for part in parts:
        found.append(part)
        found[-1] = next((new for old, new in RENAMED.items() if _matches(found, old)), part)
    return found


def tell_override(text: str) -> None:
    """Tell the user of what is old in the dotted key of ``--set text``."""
    parts = text.partition("=")[0].split(".")
    if today(parts) != parts:
        _tell(f"--set {text}: {_said(parts)}")


def _rename(document: Document, location: Location, new: str, said: str) -> list[_Change]:
    """Rename the key at ``location`` if it is there."""
    holder, old = document.at(location[:-1]), location[-1]
    if not isinstance(holder, dict) or old not in holder:
        return []
    if new in holder:
        del holder[old]
        return [_Change(Problem(location, f"{said}, and both are given, expected only {new}"), refused=True)]
    document.rename_key(location, new)
    return [_Change(Problem((*location[:-1], new), said))]


def _told(document: Document, changes: Sequence[_Change]) -> list[Problem]:
    """Tell the user of ``changes`` in the order of their lines; return the refused ones."""
    for line in document.lines(change.said for change in changes if not change.refused):
        _tell(line)
    return [change.said for change in changes if change.refused]


@cache
def _tell(said: str) -> None:
    """Print the notice; once per process, however often the scenario is read."""
    print(f"{said}; the old name will stop working in the next release", file=sys.stderr)


def _said(parts: Sequence[str]) -> str:
    """What became of the ``parts`` of a dotted key, from the first to the last that has another name today."""
    renamed = today(parts)
    changed = [number for number, part in enumerate(parts) if part != renamed[number]]
    span = slice(changed[0], changed[-1] + 1)
    return f"'{'.'.join(parts[span])}' is now '{'.'.join(renamed[span])}'"


def _matches(parts: Sequence[str], place: Sequence[str]) -> bool:
    return len(parts) == len(place) and all(known in (part, ANY) for part, known in zip(parts, place, strict=True))


def _mappings(data: object, location: Location, around: Sequence[str]) -> Iterator[Location]:
    """Where the mappings are that ``around`` leads to from ``data``, which is at ``location``."""
    if not around:
        if isinstance(data, dict):
            yield location
    elif around[0] == ANY:
        for index, item in enumerate(data if isinstance(data, list) else ()):
            yield from _mappings(item, (*location, index), around[1:])
    elif isinstance(data, dict) and around[0] in data:
        yield from _mappings(data[around[0]], (*location, around[0]), around[1:])
