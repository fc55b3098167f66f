"""Which network an engine has of those that a scenario may say, and which jobs it cannot run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from testbed.errors import BadInputError
from testbed.experiment.network_model import NetworkModel
from testbed.experiment.scheduler_choice import SchedulerChoice
from testbed.scenario.loading import Scenario
from topologies.load_balancing import LoadBalancing
from workloads.job import Job

IN_WINDOWS: Final[tuple[LoadBalancing, ...]] = ("hash", "spray", "spray-in-turn")
"""What a simulation of windows has."""
IN_KERNELS: Final[tuple[LoadBalancing, ...]] = (*IN_WINDOWS, "flowlet")
"""What an emulation has."""


def network_of(scenario: Scenario, engine: str) -> NetworkModel | None:
    """What ``engine`` simulates; None if it does not. ``BadInputError`` for a network that cannot be emulated."""
    network = scenario.network.value()
    if engine == "emulation" and not network.as_emulated:
        why = f"network.transport is {network.transport}, which only a simulation has: expected --engine simulation"
        raise BadInputError(scenario.line_of(("network", "transport"), why))
    return network if engine == "simulation" else None


def balanced(network: NetworkModel | None, balancing: LoadBalancing) -> NetworkModel | None:
    """``network`` with another load balancing."""
    return None if network is None else replace(network, load_balancing=balancing)


def load_balancing_of(scenario: Scenario, choice: SchedulerChoice, engine: str) -> LoadBalancing:
    """How packets take paths in the run of ``choice``; ``BadInputError`` where ``engine`` does not have that.

    The flow engine has no packets: where it is not all paths alike, it lets flows take the decided one.
    """
    network = scenario.network.value()
    found = choice.load_balancing or network.load_balancing
    if engine == "flow":
        if found in IN_WINDOWS[1:] and scenario.sharing == "proportional":
            why = f"proportional sharing is of flows on one path each, not of {found}: expected max-min"
            raise BadInputError(scenario.line_of(("sharing",), why))
        return found if found in IN_WINDOWS else "hash"
    able = IN_KERNELS if engine == "emulation" else IN_WINDOWS
    if network.as_emulated and found not in able:
        where = ("network", "load_balancing") if choice.load_balancing is None else ("schedulers",)
        what = "an emulation" if engine == "emulation" else "a simulation with transport window"
        why = f"{what} has no load balancing {found}, expected one of {', '.join(able)}, or another transport"
        raise BadInputError(scenario.line_of(where, why))
    return found


def refuse_programs(scenario: Scenario, jobs: Sequence[Job]) -> None:
    """Raise ``BadInputError`` for a job that is a real program: only the emulation runs it."""
    real = next((job.name for job in jobs if job.external is not None), None)
    if real is not None:
        why = f"job '{real}' is of kind external, which only the emulation runs: expected --engine emulation"
        raise BadInputError(scenario.line_of_job(real, why))
