"""Which network an engine has of those that a scenario may say, and which jobs it cannot run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from testbed.errors import BadInputError
from testbed.experiment.network_model import SIMULATED, NetworkModel
from testbed.experiment.scheduler_choice import SchedulerChoice
from testbed.scenario.loading import Scenario
from testbed.scenario.network.simulation import NetworkSpec
from topologies.network.congestion import KERNEL_TRANSPORTS, Congestion, others_can_change
from topologies.network.load_balancing import LoadBalancing
from workloads.job import Job

IN_WINDOWS: Final[tuple[LoadBalancing, ...]] = ("hash", "spray", "spray-in-turn")
"""What a simulation of windows has."""
IN_KERNELS: Final[tuple[LoadBalancing, ...]] = (*IN_WINDOWS, "flowlet")
"""What an emulation has."""


def network_of(scenario: Scenario, engine: str) -> NetworkModel | None:
    """What ``engine`` simulates; None if it does not. ``BadInputError`` for a network that cannot be emulated."""
    name = scenario.network.transport_name
    able: Mapping[str, Sequence[str]] = {"emulation": ("window", *KERNEL_TRANSPORTS, "bpf"), "simulation": SIMULATED}
    if engine in able and name not in able[engine]:
        other, shown = ("simulation", "a simulation") if engine == "emulation" else ("emulation", "an emulation")
        why = f"network.transport is {name}, which only {shown} has: expected --engine {other}"
        raise BadInputError(scenario.line_of(("network", "transport"), why))
    return scenario.network.value() if engine == "simulation" else None


def ignored_network(scenario: Scenario, engine: str) -> str:
    """Return a line on what ``scenario`` says of its network and the flow engine has not; empty if it has all of it."""
    plain = NetworkSpec.model_construct()
    keys = [
        f"network.{key}"
        for key in type(plain).model_fields
        if key != "load_balancing" and getattr(scenario.network, key) != getattr(plain, key)
    ]
    if engine != "flow" or not keys:
        return ""
    have = "has" if len(keys) == 1 else "have"
    return f"{', '.join(keys)} {have} no effect in the flow engine, which has no packets: expected --engine simulation"


def congestion_of(scenario: Scenario, engine: str, jobs: Sequence[Job]) -> Congestion | None:
    """The congestion control of an emulation, None for windows; ``BadInputError`` for a file that root must not load.

    Root loads it into the kernel: it has to be a file that nobody else can change.
    """
    found = scenario.network.congestion(_shortest_pause_s(jobs) / 2) if engine == "emulation" else None
    if found is None or not found.file:
        return found
    path = Path(found.file)
    try:
        state = path.stat()
    except OSError as error:
        raise BadInputError(scenario.line_of(("network", "transport"), f"{path}: {error.strerror}")) from None
    if others_can_change(state):
        why = f"{path} can be changed by others than root, expected a file of root's that only root can write"
        raise BadInputError(scenario.line_of(("network", "transport"), why))
    return found


def _shortest_pause_s(jobs: Sequence[Job]) -> float:
    """The shortest time for which a job computes before it sends; 0 without jobs that send."""
    pauses = [sum(phase.compute_s * (1.0 - phase.overlap) for phase in job.phases) for job in jobs if job.flows]
    return min(pauses, default=0.0)


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
    if (engine == "emulation" or network.as_emulated) and found not in able:
        where = ("network", "load_balancing") if choice.load_balancing is None else ("schedulers",)
        what, other = "a simulation with transport window", "another transport"
        if engine == "emulation":
            what, other = "an emulation", "--engine simulation and a transport at line rate"
        why = f"{what} has no load balancing {found}, expected one of {', '.join(able)}, or {other}"
        raise BadInputError(scenario.line_of(where, why))
    return found


def refuse_programs(scenario: Scenario, jobs: Sequence[Job]) -> None:
    """Raise ``BadInputError`` for a job that is a real program: only the emulation runs it."""
    real = next((job.name for job in jobs if job.external is not None), None)
    if real is not None:
        why = f"job '{real}' is of kind external, which only the emulation runs: expected --engine emulation"
        raise BadInputError(scenario.line_of_job(real, why))
