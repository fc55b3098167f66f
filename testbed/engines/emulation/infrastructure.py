"""The network, the controller and the workers of a run: what is there before any job comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from testbed.engines.common.worker_plan import hosts_of
from testbed.engines.emulation.controller_process import ControllerProcess
from testbed.engines.emulation.network_settings import network_settings_of, spread_of
from testbed.engines.emulation.switch_check import SwitchCheck
from testbed.engines.emulation.workers import WorkerPool
from testbed.experiment.built_part import built_part_of
from testbed.experiment.experiment import Experiment
from topologies.mininet_adapter.failing_parts import FailingParts
from topologies.mininet_adapter.network import EmulatedNetwork
from topologies.mininet_adapter.readback import queue_mismatches
from workloads.iteration.protocol import Event
from workloads.job import Flow

Tell = Callable[..., None]
Listener = Callable[[str, Event], None]


class Infrastructure:
    """Brings the parts up and down on which jobs come and go. What workers say goes to ``listener``, once there is one.

    ``timings``: seconds from the beginning until each step of coming up was done.
    """

    def __init__(self, experiment: Experiment, scratch: Path, tell: Tell) -> None:
        self._experiment = experiment
        self._tell = tell
        self._part = built_part_of(experiment)
        settings = network_settings_of(experiment)
        self.network = EmulatedNetwork(experiment.fabric, settings, scratch / "openvswitch", self._part)
        self.network.datapath.spread_by(spread_of(experiment))
        rest = scratch / "controller" / "rest.sock"
        choice = experiment.scheduler
        self.controller = ControllerProcess(
            choice.name, choice.options, experiment.levels, experiment.seed, rest, spread=experiment.spreads
        )
        self.workers = WorkerPool(lambda host, event: self.listener(host, event), scratch / "workers")
        self.listener: Listener = _ignore
        self.timings: dict[str, float] = {}

    async def bring_up(self) -> None:
        """Bring everything up; ``RunFailedError`` or ``CommandError`` says what failed."""
        began = time.monotonic()
        self._tell("set up", note="namespaces and links")
        await self.controller.spawn()
        await asyncio.to_thread(self.network.start_hosts)  # the heartbeat goes on meanwhile
        await self.controller.ready()
        await asyncio.to_thread(self.network.start_switches, self.controller.openflow_target)
        self.timings["network"] = time.monotonic() - began
        self._tell("set up", note="workers and switches")
        await asyncio.gather(self._connect_switches(), self._start_workers())
        self.timings["connected"] = time.monotonic() - began

    async def put_fabric(self) -> None:
        """Tell the controller the fabric, and what of it is built: it has no jobs then, and switches no rules."""
        await self.controller.set_fabric(self._experiment.fabric)
        if len(self._part.switches) < len(self._experiment.fabric.switches):
            await self.controller.set_switches(self._part.switches)

    async def _connect_switches(self) -> None:
        await self.put_fabric()
        await self.controller.wait_for_switches(list(self._part.switches))

    async def _start_workers(self) -> None:
        await self.workers.start({host: self.network.host_pid(host) for host in self._hosts_of_workers()})

    def _hosts_of_workers(self) -> Iterable[str]:
        """The hosts on which a job may be; with a manager all of them."""
        experiment = self._experiment
        if experiment.managed is not None:
            return experiment.fabric.hosts
        return dict.fromkeys(host for job in experiment.jobs for host in hosts_of(job, experiment.fabric))

    def switch_check(self, flows: Callable[[], Iterable[Flow]]) -> SwitchCheck:
        """A check of the switches, on which ``flows`` returns the flows that are there."""
        experiment, datapath = self._experiment, self.network.datapath
        return SwitchCheck(experiment.fabric, datapath, self.controller, flows, spread=experiment.spreads)

    def failing_parts(self) -> FailingParts:
        """What makes parts of the network fail."""
        return FailingParts(self.network)

    async def into_force(self) -> None:
        """Return when packets follow the rules that the switches have confirmed."""
        await asyncio.to_thread(self.network.datapath.carry_out)

    async def queue_mismatches(self) -> list[str]:
        """Queues that the kernel does not hold as they were set."""
        return await asyncio.to_thread(queue_mismatches, self.network)

    def watched_processes(self) -> dict[str, int]:
        """The processes on which a run's timing rests: name -> process id."""
        controller = {} if self.controller.pid is None else {"the controller": self.controller.pid}
        return {**self.network.openvswitch.watched, **controller, **self.workers.watched}

    def ended(self) -> str | None:
        """Which process that the run needs has ended, in words."""
        return self.controller.ended() or self.network.ended()

    async def take_down(self) -> None:
        """End every process and take the network away."""
        await self.workers.stop()
        await self.controller.stop()
        self.network.stop()


def _ignore(_host: str, _event: Event) -> None:
    """Nobody listens yet."""
