"""Which network an engine has of those that a scenario may say, and which jobs it cannot run."""

from __future__ import annotations

from collections.abc import Sequence

from testbed.errors import BadInputError
from testbed.experiment.network_model import NetworkModel
from testbed.scenario.loading import Scenario
from workloads.job import Job


def network_of(scenario: Scenario, engine: str) -> NetworkModel | None:
    """What ``engine`` simulates; None if it does not. ``BadInputError`` for a network that cannot be emulated."""
    network = scenario.network.value()
    if engine == "emulation" and not network.as_emulated:
        why = f"network.transport is {network.transport}, which only a simulation has: expected --engine simulation"
        raise BadInputError(scenario.line_of(("network", "transport"), why))
    return network if engine == "simulation" else None


def refuse_programs(scenario: Scenario, jobs: Sequence[Job]) -> None:
    """Raise ``BadInputError`` for a job that is a real program: only the emulation runs it."""
    real = next((job.name for job in jobs if job.external is not None), None)
    if real is not None:
        why = f"job '{real}' is of kind external, which only the emulation runs: expected --engine emulation"
        raise BadInputError(scenario.line_of_job(real, why))
