"""The scenarios that ship with the testbed, by name; imports nothing that computes, so the command line is quick."""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

COMPUTED: Final = frozenset({"llm1024.yaml"})
"""Those that no single machine can emulate."""


def names() -> tuple[str, ...]:
    """Return the names of the bundled scenarios, sorted, such as ``hello.yaml``."""
    return tuple(sorted(item.name for item in _folder().iterdir() if item.name.endswith(".yaml")))


def text(name: str) -> str:
    """Return the text of the bundled scenario ``name``."""
    return str((_folder() / name).read_text(encoding="utf-8"))


def folder() -> Path:
    """Return where the bundled scenarios lie, and the files that they name."""
    return Path(str(_folder()))


@cache
def _folder() -> Any:
    return resources.files("testbed") / "scenarios"


def emulated() -> tuple[str, ...]:
    """The names of those that a machine can emulate."""
    return tuple(name for name in names() if name not in COMPUTED)
