"""Names and paths that were read from a file, checked before they become places on a disk. Pure.

A run directory may come from anywhere. What its files call a scheduler or a folder is input like a scenario, and
must not lead out of the directory.
"""

from __future__ import annotations

from typing import Final

LONGEST_NAME: Final = 200
"""Bytes of a file's name; a file system takes 255, and drafts need some of them."""
LONGEST_SCHEDULER: Final = 120
"""Bytes of a scheduler's name, which is part of longer ones."""


def plain_name(name: object, what: str, longest: int = LONGEST_NAME) -> str:
    """Return ``name`` if it can name one file or folder; ``what`` names it in the ``ValueError``.

    It has no slash, does not begin with a dot, is printable and at most ``longest`` bytes long.
    """
    if not isinstance(name, str):
        raise ValueError(f"{what} is not a string, expected a plain name")
    if not name or not name.isprintable() or "/" in name or name.startswith("."):
        raise ValueError(f"{what} {name[:LONGEST_NAME]!a} cannot name a file, expected a plain name")
    if len(name.encode()) > longest:
        raise ValueError(f"{what} has {len(name.encode())} bytes, expected a name of {longest} at most")
    return name


def scheduler_name(name: object) -> str:
    """Return ``name`` if a scheduler may have it: it names the folder of its run; ``ValueError`` otherwise."""
    return plain_name(name, "scheduler", LONGEST_SCHEDULER)


def plain_parts(path: str, what: str) -> tuple[str, ...]:
    """Return the folders and the name of the relative ``path``, each of them plain; ``ValueError`` otherwise."""
    return tuple(plain_name(part, what) for part in path.split("/"))
