"""Fabrics by kind: the built-in generators, and those of other packages (entry points ``testbed.fabrics``).

A generator is a function that takes keyword arguments and returns a :class:`topologies.fabric.Fabric`; it raises
``ValueError``, the parameter's name first, for a fabric that cannot be. :mod:`topologies.parameters` has the markers
of its parameters, from which the keys of scenario files follow.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Final

import topologies.generators
from topologies.fabric import Fabric
from topologies.parameters import kind_of, parameters_of

GROUP: Final = "testbed.fabrics"

Generator = Callable[..., Fabric]


def _marked_generators() -> Iterator[tuple[str, Generator]]:
    """Kind and generator of every function of this package that :func:`.parameters.fabric_kind` marks."""
    rooms = (topologies, topologies.generators)
    found = ((room.__name__, each) for room in rooms for each in iter_modules(room.__path__) if not each.ispkg)
    names = [f"{room}.{each.name}" for room, each in found]
    for module in (import_module(name) for name in names if name != __name__):
        for value in vars(module).values():
            if getattr(value, "__module__", "") == module.__name__ and (kind := kind_of(value)):
                yield kind, value


BUILT_IN: Final[Mapping[str, Generator]] = MappingProxyType(dict(sorted(_marked_generators())))
"""Kind -> generator; a fabric is registered by the mark on its own generator and nowhere else."""


def explained(point: EntryPoint, error: Exception) -> str:
    """Return in one line why the fabric of ``point`` cannot be used."""
    return f"fabric '{point.name}' cannot be loaded: {type(error).__name__}: {error}"


def generators(explain: Callable[[EntryPoint, Exception], str] = explained) -> Mapping[str, Generator]:
    """Return kind -> generator, the built-in ones first; warn of one of another package that cannot be used.

    ``explain`` returns the words of the warning.
    """
    found = dict(BUILT_IN)
    for point in entry_points(group=GROUP):
        try:
            generator = point.load()
            parameters_of(generator)
        except Exception as error:  # a foreign package may fail in any way; the other fabrics still work
            warnings.warn(explain(point, error), stacklevel=2)
        else:
            found.setdefault(point.name, generator)
    return MappingProxyType(found)
