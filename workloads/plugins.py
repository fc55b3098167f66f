"""Parts that are chosen by name: the built-in ones, and those that other packages add by an entry point."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points

Factory = Callable[..., object]
Options = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Plugins:
    """The parts available as ``kind``: ``built_in``, factories by name, and the entry points of ``group``.

    ``attributes``: what a created part must have, its method last.
    """

    kind: str
    group: str
    built_in: Mapping[str, Factory]
    attributes: tuple[str, ...]

    def names(self) -> tuple[str, ...]:
        """Return the names of all that can be made, sorted."""
        return tuple(sorted(self.built_in.keys() | {point.name for point in entry_points(group=self.group)}))

    def create(self, name: str, options: Options | None = None, seed: int | None = None) -> object:
        """Return the part called ``name`` with its ``options``; ``seed`` goes to a part that takes one.

        Raises ``ValueError``, one line, for an unknown name, an unknown option, or an option's bad value.
        """
        factory = self.find(name)
        given = dict(options or {})
        known, takes_any = _options(factory)
        unknown = sorted(given.keys() - known)
        if unknown and not takes_any:
            expected = ", ".join(sorted(known)) or "none"
            raise ValueError(f"unknown option '{unknown[0]}' of {self.kind} {name}, expected: {expected}")
        if seed is not None and "seed" in known:
            given.setdefault("seed", seed)
        try:
            made = factory(**given)
        except ValueError:
            raise
        except Exception as error:  # an option that must be given, or one of the wrong type: a part may fail in any way
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"{self.kind} {name}: {' '.join(reason.split())}") from error
        missing = [attribute for attribute in self.attributes if not hasattr(made, attribute)]
        if missing:
            expected = f"{', '.join(self.attributes[:-1])} and {self.attributes[-1]}()"
            raise ValueError(f"{self.kind} '{name}' has no {missing[0]}, expected {expected}")
        return made

    def find(self, name: str) -> Factory:
        """Return the factory of ``name``; ``ValueError`` if there is none, or it cannot be loaded."""
        if name in self.built_in:
            return self.built_in[name]
        for point in entry_points(group=self.group, name=name):
            return self._loaded(name, point.load)
        raise ValueError(f"unknown {self.kind} '{name}', expected one of: {', '.join(self.names())}")

    def package_of(self, name: str) -> str:
        """Return the distribution whose entry point ``name`` is; "" for what is built in."""
        if name in self.built_in:
            return ""
        found = (point.dist for point in entry_points(group=self.group, name=name))
        return next((dist.name for dist in found if dist is not None), "")

    def _loaded(self, name: str, load: Callable[[], object]) -> Factory:
        try:
            factory = load()
        except Exception as error:  # a foreign package may fail in any way; the user needs its name and reason
            raise ValueError(f"{self.kind} '{name}' cannot be loaded: {type(error).__name__}: {error}") from error
        if not callable(factory):
            raise ValueError(f"{self.kind} '{name}' is not a class or function but {type(factory).__name__}")
        return factory


def _options(factory: Factory) -> tuple[set[str], bool]:
    """The names of the options, and whether others are taken too (``**kwargs``)."""
    parameters = inspect.signature(factory).parameters.values()
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = {parameter.name for parameter in parameters if parameter.kind in kinds}
    return named, any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
