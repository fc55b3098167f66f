from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from typing import Annotated, Literal

import pytest

from topologies import registry
from topologies.clos import clos
from topologies.fabric import Fabric
from topologies.parameters import Choice, Count, Rate, parameters_of
from topologies.registry import BUILT_IN, generators

HOST = {"gpus_per_host": 1, "nics_per_host": 1, "port_rate": 1e9, "fabric_rate": 1e9}


def star(
    *,
    hosts: Annotated[int, Count("number of hosts")],
    speed: Annotated[float | None, Rate("rate of every cable")] = None,
    core: Annotated[Literal["one", "two"], Choice("how many switches")] = "one",
) -> Fabric:
    return clos(hosts=hosts, tors=1, aggregations=1, **HOST)


def unmarked(*, hosts: int) -> Fabric:
    return star(hosts=hosts)


def test_every_built_in_fabric_says_what_its_parameters_mean() -> None:
    assert set(BUILT_IN) == {"clos", "clos3", "double-sided"}
    for generator in BUILT_IN.values():
        assert all(parameter.marker.description for parameter in parameters_of(generator))


def test_parameters_follow_the_signature() -> None:
    found = parameters_of(star)
    assert [(each.name, each.kind, each.optional, each.required) for each in found] == [
        ("hosts", int, False, True),
        ("speed", float, True, False),
        ("core", Literal["one", "two"], False, False),
    ]
    assert found[0].marker == Count("number of hosts")


def test_a_parameter_without_a_marker_is_named() -> None:
    with pytest.raises(TypeError, match="parameter hosts of a fabric has no marker"):
        parameters_of(unmarked)


def test_fabrics_of_other_packages_come_after_the_built_in_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"star": f"{__name__}:star", "unmarked": f"{__name__}:unmarked", "gone": "no_such_module:star"}
    loaded = {"star": star, "unmarked": unmarked}
    monkeypatch.setattr(EntryPoint, "load", lambda point: loaded[point.name])
    found = EntryPoints(EntryPoint(name, value, registry.GROUP) for name, value in points.items())
    monkeypatch.setattr(registry, "entry_points", lambda **wanted: found.select(**wanted))
    with pytest.warns(UserWarning, match="fabric '(unmarked|gone)' cannot be loaded") as warned:
        assert list(generators()) == [*BUILT_IN, "star"]
    assert len(warned) == 2
