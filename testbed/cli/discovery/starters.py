"""The starting points of ``testbed init`` as text: templates in ``testbed/starters`` with names filled in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

from testbed.errors import BadInputError


@dataclass(frozen=True, slots=True)
class Names:
    """What a plug-in is called in scenarios, as a Python module, and as a class in it."""

    name: str
    module: str
    class_name: str


def names_of(kind: str, directory: Path) -> Names:
    """Return the names of the ``kind`` of plug-in that a package in ``directory`` has, made of its last part.

    Raises ``BadInputError`` where that is no name of a Python module, or one that is taken.
    """
    module = directory.resolve().name.replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9_]*[a-z0-9]", module):
        raise BadInputError(
            f"{directory}: expected a name of lower-case letters, digits, '-' and '_', such as my_{kind}"
        )
    names = Names(module.replace("_", "-"), module, "".join(part.capitalize() for part in module.split("_")))
    if names.name in _taken(kind):
        raise BadInputError(f"{directory}: there is a {kind} '{names.name}' already, expected another name")
    if find_spec(module) is not None:
        raise BadInputError(f"{directory}: there is a Python module '{module}' already, expected another name")
    return names


def scenario(path: Path) -> str:
    """Return the text of a scenario that will be at ``path``."""
    return _filled(_folder() / "scenario.yaml", {"file": str(path), "schema": "$schema"})


def package(kind: str, names: Names) -> dict[str, str]:
    """Return file name -> text of a package with a plug-in of ``kind``."""
    values = {"name": names.name, "module": names.module, "class_name": names.class_name}
    folder = _folder() / kind
    return {
        "pyproject.toml": _filled(folder / "pyproject.toml.txt", values),
        f"{names.module}.py": _filled(folder / "module.py.txt", values),
        f"test_{names.module}.py": _filled(folder / "test_module.py.txt", values),
    }


def _taken(kind: str) -> tuple[str, ...]:
    if kind == "scheduler":
        from controller.schedulers.registry import names

        return names()
    from workloads.managers.registry import names as parts

    return parts("policy")


def _folder() -> Any:
    return resources.files("testbed") / "starters"


def _filled(template: Any, values: Mapping[str, str]) -> str:
    return Template(template.read_text(encoding="utf-8")).substitute(values)
