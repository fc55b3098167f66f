"""The ``fabric`` section of a scenario: a model for each kind of fabric, made from its generator's signature."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field, create_model

from testbed.scenario import quantities
from topologies import parameters
from topologies.fabric import Fabric
from topologies.parameters import Marker, Parameter, parameters_of
from topologies.registry import Generator, generators

_WRITTEN: Final[Mapping[type[Marker], Any]] = MappingProxyType(
    {parameters.Count: quantities.Count, parameters.Rate: quantities.Rate, parameters.Flag: quantities.Flag}
)
"""How the values of a marked parameter are written; a choice is written as it is."""

GENERATORS: Final = generators()
"""Kind -> generator, as found when the testbed starts."""


class FabricSection(BaseModel):
    """A fabric: its kind, and the parameters of the generator of that name."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class _HasFabric(Protocol):
    @property
    def fabric(self) -> FabricSection: ...


def model_of(kind: str, generator: Generator) -> type[FabricSection]:
    """Return the model of a fabric of ``kind``: a field for each parameter of ``generator``."""
    name = "".join(part.capitalize() for part in kind.split("-"))
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


def kinds_spelled() -> str:
    """Spell the kinds of fabric: ``clos, clos3 or double-sided``."""
    *others, last = FABRICS
    return f"{', '.join(others)} or {last}"


def build_fabric(spec: FabricSection | _HasFabric) -> Fabric:
    """Return the fabric of a scenario, or of its ``fabric`` section; ``ValueError`` names an impossible parameter."""
    # Not model_dump: that writes rates as text.
    given = dict(spec if isinstance(spec, FabricSection) else spec.fabric)
    return GENERATORS[given.pop("kind")](**given)
