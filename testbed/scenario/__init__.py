"""The scenario file: what a user writes, validated, with the line of everything that is wrong."""

from __future__ import annotations

from collections.abc import Mapping

from testbed.bundled_scenarios import emulated
from testbed.bundled_scenarios import names as bundled
from testbed.experiment.experiment import Managed
from testbed.scenario.loading import Scenario, load
from testbed.scenario.network.fabrics import build_fabric
from topologies.fabric import Fabric
from workloads.job import Job

__all__ = ["Scenario", "build_fabric", "build_jobs", "build_managed", "bundled", "emulated", "json_schema", "load"]


def build_jobs(scenario: Scenario, fabric: Fabric, seed: int | None = None) -> tuple[Job, ...]:
    """See :func:`testbed.scenario.build.build_jobs`."""
    from testbed.scenario.build import build_jobs as build

    return build(scenario, fabric, seed)


def build_managed(scenario: Scenario, fabric: Fabric) -> Managed | None:
    """See :func:`testbed.scenario.build.build_managed`."""
    from testbed.scenario.build import build_managed as build

    return build(scenario, fabric)


def json_schema() -> Mapping[str, object]:
    """See :func:`testbed.scenario.editor_schema.editor_schema`."""
    from testbed.scenario.editor_schema import editor_schema

    return editor_schema()
