"""What a shell may complete a value to: names and paths that exist, found without importing what computes.

A completer is called as argcomplete does it: with keyword arguments, of which ``prefix`` is what was typed so far.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable
from functools import cache
from importlib import resources
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

Completer = Callable[..., list[str]]
VARIABLE: Final = "_ARGCOMPLETE"
"""In the environment of a command that a shell started to complete a line."""


def complete_with(action: argparse.Action, completer: Completer) -> None:
    """Have the values of ``action`` completed by ``completer``."""
    action.completer = completer  # type: ignore[attr-defined]


def scenarios(prefix: str = "", **_: Any) -> list[str]:
    """The bundled scenarios, without ``.yaml``, and the YAML files and directories that the prefix leads to."""
    from testbed import bundled_scenarios

    return [name.removesuffix(".yaml") for name in bundled_scenarios.names()] + files(prefix)


def files(prefix: str = "", **_: Any) -> list[str]:
    """YAML files, and directories with a slash behind."""
    return [path for path in _paths(prefix) if path.endswith(("/", ".yaml", ".yml"))]


def directories(prefix: str = "", **_: Any) -> list[str]:
    """Directories, those of finished runs in ``runs`` first."""
    runs = [str(path.parent) for path in sorted(Path("runs").glob("*/summary.json"))]
    return runs + [path for path in _paths(prefix) if path.endswith("/") and path.rstrip("/") not in runs]


def runs(prefix: str = "", **_: Any) -> list[str]:
    """The runs with a report in ``runs``, by name."""
    return [path.parent.name for path in sorted(Path("runs").glob("*/report.html"))] + directories(prefix)


def experiments(**_: Any) -> list[str]:
    """The experiments of ``testbed reproduce``; the list of them imports none."""
    from testbed.reproduce.experiments import names

    return [*names(), "all"]


def schedulers(**_: Any) -> list[str]:
    """The built-in schedulers and those of installed packages."""
    return sorted({*built_in_schedulers(), *(point.name for point in entry_points(group="testbed.schedulers"))})


@cache
def built_in_schedulers() -> tuple[str, ...]:
    """The names in the sources of the schedulers: to import these takes half a second, because of numpy.

    A unit test compares them with the registry.
    """
    folder = Path(str(resources.files("controller"))) / "schedulers"
    texts = (path.read_text("utf-8") for path in folder.rglob("*.py"))
    return tuple(
        sorted({name for text in texts for name in re.findall(r'^    name(?:: .*)? = "([\w-]+)"$', text, re.MULTILINE)})
    )


def _paths(prefix: str) -> list[str]:
    head, tail = os.path.split(prefix)
    try:
        found = [entry for entry in os.scandir(head or ".") if entry.name.startswith(tail)]
    except OSError:
        return []
    shown = [entry for entry in found if tail.startswith(".") or not entry.name.startswith(".")]
    return sorted(os.path.join(head, entry.name) + ("/" if entry.is_dir() else "") for entry in shown)
