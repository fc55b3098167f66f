"""The ``fabric`` section of a scenario: a model for each kind of fabric, made from its generator's signature."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, reduce
from importlib.metadata import EntryPoint
from operator import or_
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, create_model

from controller.service.consistency import check_fabric
from controller.service.json_codec import decode, encode
from testbed.scenario import quantities
from topologies import parameters
from topologies.fabric import Fabric
from topologies.parameters import Marker, Parameter, parameters_of
from topologies.reachability import EVERY_HOST, ports_apart
from topologies.registry import BUILT_IN, Generator, explained, generators
from workloads.imported.files import ALGORITHM, FORMS, SCHEDULE, SHAPE
from workloads.plugin_errors import PluginCode, place_of

_WRITTEN: Final[Mapping[type[Marker], Any]] = MappingProxyType(
    {
        parameters.Count: quantities.Count,
        parameters.Rate: quantities.Rate,
        parameters.Flag: quantities.Flag,
        parameters.File: quantities.Text,
    }
)
"""How the values of a marked parameter are written; a choice is written as it is."""


def _explained(point: EntryPoint, error: Exception) -> str:
    """As the registry does, with the line of the package's own code."""
    return f"{place_of(error, point.module.partition('.')[0])}{explained(point, error)}"


GENERATORS: Final = generators(_explained)
"""Kind -> generator, as found when the testbed starts."""


class FabricSection(BaseModel):
    """A fabric: its kind, and the parameters of the generator of that name."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _HasFabric(Protocol):
    @property
    def fabric(self) -> FabricSection: ...


def model_of(kind: str, generator: Generator) -> type[FabricSection]:
    """Return the model of a fabric of ``kind``: a field for each parameter of ``generator``."""
    name = "".join(part.capitalize() for part in kind.replace("+", "-plus").split("-"))
    fields: dict[str, Any] = {"kind": (Literal[kind], ...)}
    fields |= {each.name: _field(each) for each in parameters_of(generator)}
    about = f"Parameters of :func:`{generator.__module__}.{generator.__qualname__}`."
    return create_model(f"{name}Spec", __base__=FabricSection, __doc__=about, **fields)


def _field(parameter: Parameter) -> tuple[Any, Any]:
    kind = _WRITTEN.get(type(parameter.marker), parameter.kind)
    default = ... if parameter.required else parameter.default
    return kind | None if parameter.optional else kind, Field(default, description=parameter.marker.description)


FABRICS: Final[Mapping[str, type[FabricSection]]] = MappingProxyType(
    {kind: model_of(kind, generator) for kind, generator in GENERATORS.items()}
)
"""Kind -> model."""

if TYPE_CHECKING:
    FabricSpec = FabricSection
else:
    FabricSpec = Annotated[reduce(or_, FABRICS.values()), Field(discriminator="kind")]


FILE_KEYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        each.name: kind
        for kind, generator in GENERATORS.items()
        for each in parameters_of(generator)
        if isinstance(each.marker, parameters.File)
    }
)
"""Key that names a file -> kind of the fabric that the file describes: the key alone is enough."""


def find_files(scenario: Mapping[str, object], folder: Path) -> None:
    """Complete what names files in ``scenario``: paths begin at ``folder``, and a fabric's file says its kind."""
    fabric = scenario.get("fabric")
    if isinstance(fabric, dict):
        for key in FILE_KEYS.keys() & fabric.keys():
            fabric.setdefault("kind", FILE_KEYS[key])
            _complete(fabric, key, folder)
    network = scenario.get("network")
    if isinstance(network, dict) and isinstance(network.get("transport"), dict):
        _complete(network["transport"], "bpf", folder)
    jobs = scenario.get("jobs")
    for job in jobs if isinstance(jobs, list) else ():
        if not isinstance(job, dict):
            continue
        _complete(job, "layer_times", folder)
        if isinstance(requests := job.get("requests"), dict):
            _complete(requests, "trace", folder)
        if isinstance(model := job.get("model"), dict):
            for key in (*FORMS, SCHEDULE, ALGORITHM, SHAPE):
                _complete(model, key, folder)


def _complete(holder: dict[str, object], key: str, folder: Path) -> None:
    if isinstance(path := holder.get(key), str):
        holder[key] = str(folder.absolute() / path)


def kinds_spelled() -> str:
    """Spell the kinds of fabric: ``clos, clos3 or double-sided``."""
    *others, last = FABRICS
    return f"{', '.join(others)} or {last}"


def build_fabric(spec: FabricSection | _HasFabric) -> Fabric:
    """Return the fabric of a scenario, or of its ``fabric`` section; ``ValueError`` names an impossible parameter.

    A generator of another package that fails in another way, or returns no fabric, raises ``PluginError``; so does one
    that refuses the parameters of a scenario, for which it returned a fabric when the scenario was checked.
    """
    # Not model_dump: that writes rates as text.
    given = dict(spec if isinstance(spec, FabricSection) else spec.fabric)
    kind = str(given.pop("kind"))
    if kind in BUILT_IN:
        return GENERATORS[kind](**given) if kind in FILE_KEYS.values() else _generated(kind, tuple(given.items()))
    try:
        return _of_another_package(kind, given)
    except ValueError as error:
        if isinstance(spec, FabricSection):
            raise
        problem = f"returned another fabric than when the scenario was checked: {_words(error)}"
        raise _code_of(kind).returned(problem, GENERATORS[kind]) from error


@lru_cache(maxsize=1)
def _generated(kind: str, given: tuple[tuple[str, Any], ...]) -> Fabric:
    """The fabric of a generator whose parameters are all there is; checking a scenario and running it share one."""
    return GENERATORS[kind](**dict(given))


def _of_another_package(kind: str, given: Mapping[str, Any]) -> Fabric:
    generator = GENERATORS[kind]
    code = _code_of(kind)
    impossible: ValueError | None = None
    fabric: object = None
    with code.guarded(generator):
        try:
            fabric = generator(**given)
        except ValueError as error:  # its own words on a parameter: the scenario is wrong, not the generator
            impossible = error
    if impossible is not None:
        raise impossible
    if not isinstance(fabric, Fabric):
        raise code.returned(f"returned {fabric!r}, expected a Fabric", generator)
    try:
        fabric = decode(Fabric, encode(fabric), "fabric")  # each part is of the type that it is said to be
        check_fabric(fabric)
    except Exception as error:  # what a foreign value does when it is looked at is its own business
        raise code.returned(f"returned a fabric that does not fit together: {_words(error)}", generator) from error
    if (apart := ports_apart(fabric)) is not None:
        raise ValueError(f"{kind}: ports {apart[0]} and {apart[1]} cannot reach each other, expected {EVERY_HOST}")
    return fabric


def _code_of(kind: str) -> PluginCode:
    return PluginCode("fabric", kind, GENERATORS[kind].__module__.partition(".")[0])


def _words(error: Exception) -> str:
    said = " ".join(str(error).split())
    return said if isinstance(error, ValueError) else f"{type(error).__name__}: {said}"
