"""Parts that are chosen by name: the built-in ones, and those that other packages add by an entry point."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from topologies.input.spelling import expectation, nearest
from workloads.plugin_errors import PluginCode, definition_of, place_of, said_by

Factory = Callable[..., object]
Options = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class PartDescription:
    """A part in words. ``package`` is its distribution, "" if built in; ``problem`` why it cannot be used, or ""."""

    kind: str
    name: str
    summary: str = ""
    package: str = ""
    problem: str = ""


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
            near = nearest(unknown[0], known)
            expected = f"did you mean '{near}'?" if near else f"expected: {', '.join(sorted(known)) or 'none'}"
            raise ValueError(f"unknown option '{unknown[0]}' of {self.kind} {name}, {expected}")
        if seed is not None and "seed" in known:
            given.setdefault("seed", seed)
        missing_options = [option for option in _required(factory) if option not in given]
        if missing_options:
            raise ValueError(f"option '{missing_options[0]}' of {self.kind} {name} is missing, it has no default")
        made = self._made(name, factory, given)
        missing = [attribute for attribute in self.attributes if not hasattr(made, attribute)]
        if missing:
            expected = f"{', '.join(self.attributes[:-1])} and {self.attributes[-1]}()"
            where = definition_of(factory) if self.code_of(name) else ""
            raise ValueError(f"{where}{self.kind} '{name}' has no {missing[0]}, expected {expected}")
        return made

    def code_of(self, name: str) -> PluginCode | None:
        """Return where the code of ``name`` is; None if it is built in or there is none."""
        if name in self.built_in:
            return None
        points = entry_points(group=self.group, name=name)
        return next((PluginCode(self.kind, name, point.module.partition(".")[0]) for point in points), None)

    def find(self, name: str) -> Factory:
        """Return the factory of ``name``; ``ValueError`` if there is none, or it cannot be loaded."""
        if name in self.built_in:
            return self.built_in[name]
        for point in entry_points(group=self.group, name=name):
            return self._loaded(name, point)
        raise ValueError(f"unknown {self.kind} '{name}', {expectation(name, self.names())}")

    def package_of(self, name: str) -> str:
        """Return the distribution whose entry point ``name`` is; "" for what is built in."""
        if name in self.built_in:
            return ""
        found = (point.dist for point in entry_points(group=self.group, name=name))
        return next((dist.name for dist in found if dist is not None), "")

    def describe(self, name: str) -> PartDescription:
        """Return ``name`` in words; nothing is created, and what cannot be loaded gives the reason."""
        package = self.package_of(name)
        try:
            summary = str(getattr(self.find(name), "summary", ""))
        except ValueError as error:
            return PartDescription(self.kind, name, package=package, problem=" ".join(str(error).split()))
        return PartDescription(self.kind, name, " ".join(summary.split()), package)

    def _made(self, name: str, factory: Factory, given: Options) -> object:
        code = self.code_of(name)
        try:
            return factory(**given)
        except ValueError as error:  # its own words on an option's value: they need the name, if they lack it
            text = str(error)
            raise ValueError(text if code is None or name in text else f"{self.kind} {name}: {text}") from error
        except Exception as error:  # an option that must be given, or one of the wrong type: a part may fail in any way
            reason = f"no {error}" if isinstance(error, KeyError) else str(error)
            where = "" if code is None else place_of(error, code.package) or definition_of(factory)
            raise ValueError(f"{where}{self.kind} {name}: {' '.join(reason.split())}") from error

    def _loaded(self, name: str, point: EntryPoint) -> Factory:
        try:
            factory: object = point.load()
        except (Exception, SystemExit) as error:  # a foreign package may fail in any way; the user needs the reason
            where = place_of(error, point.module.partition(".")[0])
            raise ValueError(f"{where}{self.kind} '{name}' cannot be loaded: {said_by(error)}") from error
        if not callable(factory):
            raise ValueError(f"{self.kind} '{name}' is not a class or function but {type(factory).__name__}")
        return factory


def _required(factory: Factory) -> list[str]:
    """The names of the options that have no default."""
    named = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(factory).parameters.values()
    return [each.name for each in parameters if each.kind in named and each.default is each.empty]


def _options(factory: Factory) -> tuple[set[str], bool]:
    """The names of the options, and whether others are taken too (``**kwargs``)."""
    parameters = inspect.signature(factory).parameters.values()
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    named = {parameter.name for parameter in parameters if parameter.kind in kinds}
    return named, any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
