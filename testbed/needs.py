"""What the emulations of a scenario need of this machine: datapaths, and a kernel that takes programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controller.schedulers import registry as schedulers_by_name
from testbed.errors import BadInputError, CannotRunError
from testbed.experiment.experiment import Experiment
from testbed.machine.capabilities import datapaths_here
from testbed.machine.datapaths import DatapathChoice, choose
from testbed.machine.kernel_programs import missing_for_programs
from testbed.scenario import Scenario
from topologies.network.load_balancing import LoadBalancing


def datapaths_of(scenario: Scenario, balancing: Mapping[str, LoadBalancing]) -> dict[str, DatapathChoice]:
    """Scheduler's label -> its datapath; ``BadInputError`` where the one that is asked for cannot carry a scheduler."""
    missing = datapaths_here()
    found = {}
    for choice in scenario.choices:
        hashing = schedulers_by_name.create(choice.name, choice.options, scenario.seed).switches_hash
        try:
            found[choice.label] = choose(scenario.datapath, missing, hashing, balancing[choice.label])
        except ValueError as error:
            raise BadInputError(scenario.line_of(("datapath",), f"{choice.label}: {error}")) from None
    return found


def require_machine(datapaths: Iterable[DatapathChoice], experiments: Iterable[Experiment]) -> None:
    """Raise ``CannotRunError``, one line, where this machine lacks a datapath, or a kernel that takes programs."""
    for choice in datapaths:
        if choice.missing:
            raise CannotRunError(choice.refusal)
    asked = [each.congestion.transport for each in experiments if each.congestion is not None]
    if asked and (why := missing_for_programs()):
        raise CannotRunError(f"network.transport {asked[0]} cannot be had here: {why}; expected transport window")
