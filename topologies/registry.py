"""Fabrics by kind: the built-in generators, and those of other packages (entry points ``testbed.fabrics``).

A generator is a function that takes keyword arguments and returns a :class:`topologies.fabric.Fabric`; it raises
``ValueError``, the parameter's name first, for a fabric that cannot be. :mod:`topologies.parameters` has the markers
of its parameters, from which the keys of scenario files follow.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Final

from topologies.clos import clos, clos3
from topologies.double_sided import double_sided
from topologies.fabric import Fabric
from topologies.parameters import parameters_of

GROUP: Final = "testbed.fabrics"

Generator = Callable[..., Fabric]

BUILT_IN: Final[Mapping[str, Generator]] = MappingProxyType(
    {"clos": clos, "clos3": clos3, "double-sided": double_sided}
)
"""The one place where a built-in fabric is registered: kind -> generator."""


def generators() -> Mapping[str, Generator]:
    """Return kind -> generator, the built-in ones first; one of another package that cannot be used is warned of."""
    found = dict(BUILT_IN)
    for point in entry_points(group=GROUP):
        try:
            generator = point.load()
            parameters_of(generator)
        except Exception as error:  # a foreign package may fail in any way; the other fabrics still work
            warnings.warn(f"fabric '{point.name}' cannot be loaded: {type(error).__name__}: {error}", stacklevel=2)
        else:
            found.setdefault(point.name, generator)
    return MappingProxyType(found)
