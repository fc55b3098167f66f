"""Parameters of fabric generators: what each one means and in which unit it is, stated once, in the signature.

A generator annotates its parameters, ``tors: Annotated[int, Count("number of ToR switches")]``, and scenario files take
exactly these: what may be written, its unit, its default and its description all follow from the signature. Below the
markers are the parameters that the hosts and cables of every fabric have.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from topologies.fabric import Fabric, IntraHost, PcieQueues

Generator = TypeVar("Generator", bound=Callable[..., Fabric])


@dataclass(frozen=True, slots=True)
class Marker:
    """What a parameter is, in one line; its class says how it is written."""

    description: str
    """What the parameter means, in one line."""


class Count(Marker):
    """A whole number of at least 1."""


class Rate(Marker):
    """bit/s, written ``200Gbps``."""


class Flag(Marker):
    """True or false."""


class Choice(Marker):
    """One of the values of a ``Literal``."""


class File(Marker):
    """The path of a file; in a scenario relative to the scenario file."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a generator: ``kind`` is its type without None, ``optional`` whether None may be given.

    ``default`` is ``inspect.Parameter.empty`` where a value must be given.
    """

    name: str
    kind: Any
    marker: Marker
    default: object
    optional: bool

    @property
    def required(self) -> bool:
        """Whether a value must be given."""
        return self.default is inspect.Parameter.empty


def parameters_of(generator: Callable[..., object]) -> tuple[Parameter, ...]:
    """Return the parameters of ``generator`` in the order of its signature.

    Raises ``TypeError`` naming a parameter that has no marker.
    """
    return tuple(_parameters(generator))


def _parameters(generator: Callable[..., object]) -> Iterator[Parameter]:
    hints = get_type_hints(generator, include_extras=True)
    for name, given in inspect.signature(generator).parameters.items():
        hint = hints.get(name)
        kind, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        marker = next((mark for mark in marks if isinstance(mark, Marker)), None)
        if marker is None:
            raise TypeError(f"parameter {name} of a fabric has no marker, expected such as Annotated[int, Count('..')]")
        members = [member for member in get_args(kind) if member is not NoneType]
        optional = NoneType in get_args(kind)
        yield Parameter(name, members[0] if optional else kind, marker, given.default, optional)


GpusPerHost = Annotated[int, Count("GPUs of a host")]
NicsPerHost = Annotated[int, Count("NICs of a host")]
PortsPerNic = Annotated[int, Count("ports of a NIC")]
PortRate = Annotated[float, Rate("rate of one port, each direction")]
HostsPerSegment = Annotated[int | None, Count("hosts of a segment; the last may have fewer (default: as many in each)")]
FabricRate = Annotated[float, Rate("rate of one cable between ToR and aggregation, each direction")]
CoreRate = Annotated[float | None, Rate("rate of one cable to a core switch (default: fabric_rate)")]
ParallelLinks = Annotated[int, Count("cables between two switches")]
Bonded = Annotated[bool, Flag("whether parallel cables are one of their summed rate")]
PcieRate = Annotated[float, Rate("rate of PCIe between GPU, PCIe switch and NIC, each direction")]
NvlinkRate = Annotated[float, Rate("rate of a GPU's NVLinks, each direction")]
IntraHostTraffic = Annotated[IntraHost, Choice("what carries traffic between GPUs of a host")]
PcieToNics = Annotated[PcieQueues, Choice("whether PCIe between GPUs and NICs holds network traffic up")]


def fabric_kind(kind: str) -> Callable[[Generator], Generator]:
    """Mark a generator as that of the fabrics of ``kind``: scenario files know it by this name."""

    def mark(generator: Generator) -> Generator:
        vars(generator)["fabric_kind"] = kind
        return generator

    return mark


def kind_of(value: object) -> str:
    """Return the kind that ``fabric_kind`` gave ``value``, or an empty string."""
    return str(getattr(value, "fabric_kind", "")) if inspect.isfunction(value) else ""
