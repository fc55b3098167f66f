"""Old module paths of plug-ins: accepted for one release, with a :class:`DeprecationWarning` naming the new path."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Final

Moved = Mapping[str, str]
"""Name in an old module -> ``module:name`` today; ``*`` -> the module that has all other names, if one has."""

ALL_OTHERS: Final = "*"


def forwarding(old: str, moved: Moved) -> Callable[[str], object]:
    """Return the ``__getattr__`` of the module ``old``: it finds names where they are today, and warns."""

    def find(name: str) -> object:
        if name.startswith("__") or not moved.keys() & {name, ALL_OTHERS}:
            raise AttributeError(f"module '{old}' has no attribute '{name}'")
        home, _, today = (moved.get(name) or f"{moved[ALL_OTHERS]}:{name}").partition(":")
        found: object = getattr(import_module(home), today)
        line = f"{old}.{name} is now {home}.{today}; testbed.plugins has what plug-ins need"
        warnings.warn(line, DeprecationWarning, stacklevel=2)
        return found

    return find


class _MovedModules(MetaPathFinder, Loader):
    """Finds modules by their old paths, after all other finders."""

    def __init__(self, modules: Mapping[str, Moved]) -> None:
        self._modules = modules

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return what loads ``fullname`` if that is an old path."""
        return spec_from_loader(fullname, self) if fullname in self._modules else None

    def exec_module(self, module: ModuleType) -> None:
        """Let ``module`` find its names elsewhere."""
        vars(module)["__getattr__"] = forwarding(module.__name__, self._modules[module.__name__])


def accept(modules: Mapping[str, Moved]) -> None:
    """Accept old paths: ``modules`` maps each to where its names are today."""
    sys.meta_path.append(_MovedModules(modules))
