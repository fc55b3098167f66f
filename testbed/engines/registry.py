"""Engines by name: the emulation, the simulation of packets, and the flow-level twin."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from testbed.engines.names import ENGINES as ENGINES
from testbed.experiment.experiment import Experiment
from testbed.experiment.scale_search import AS_GIVEN, ScaleSearch
from testbed.results.record import RunRecord


class Engine(Protocol):
    """Carries out one experiment and hands back what it saw."""

    name: str

    def check(self) -> None:
        """Raise ``CannotRunError`` if this machine cannot do it."""
        ...

    def alone(self) -> AbstractContextManager[None]:
        """Have the machine to itself for several runs in a row; ``CannotRunError`` if another run has it."""
        ...

    def run(
        self,
        experiment: Experiment,
        directory: Path,
        progress: Callable[[dict[str, Any]], None],
        search: ScaleSearch = AS_GIVEN,
    ) -> RunRecord:
        """Run ``experiment``, with logs in ``directory`` and messages to ``progress``.

        ``search``: how it comes by its scale, where packets are sent.
        """
        ...


def create_engine(name: str, watched: bool = False) -> Engine:
    """The engine called ``name``; ``ValueError`` for one that there is not.

    ``watched``: an emulation also tells samples of how a run goes (:mod:`testbed.watch.messages`).
    """
    if name == "flow":
        from testbed.engines.flow.engine import FlowEngine

        return FlowEngine()
    if name == "simulation":
        from testbed.engines.flow.engine import SimulationEngine

        return SimulationEngine()
    if name != "emulation":
        raise ValueError(f"engine '{name}' is not one of: {', '.join(ENGINES)}")
    from testbed.engines.emulation.engine import EmulationEngine

    return EmulationEngine(watched)
