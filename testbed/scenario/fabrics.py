"""From the ``fabric`` section of a scenario to the fabric."""

from __future__ import annotations

from testbed.scenario.spec import Clos3Spec, ClosSpec, DoubleSidedSpec, ScenarioSpec
from topologies.clos import clos, clos3
from topologies.double_sided import double_sided
from topologies.fabric import Fabric

AnyFabricSpec = ClosSpec | Clos3Spec | DoubleSidedSpec


def build_fabric(spec: AnyFabricSpec | ScenarioSpec) -> Fabric:
    """Return the fabric of a scenario, or of its ``fabric`` section; ``ValueError`` names an impossible parameter."""
    if isinstance(spec, ScenarioSpec):
        return build_fabric(spec.fabric)
    # Not model_dump: that writes rates as text.
    parameters = {name: getattr(spec, name) for name in type(spec).model_fields if name != "kind"}
    if isinstance(spec, ClosSpec):
        return clos(**parameters)
    if isinstance(spec, Clos3Spec):
        return clos3(**parameters)
    return double_sided(**parameters)
