"""Puts decisions in force: paths, levels, rates and shifts of the jobs that run in a flow cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

from controller.decision import Decision
from testbed.engines.common.worker_plan import pcie_turns_of, time_shift_of
from testbed.engines.flow.flow_job import FlowJob
from testbed.engines.flow.networks.network import Network
from testbed.engines.flow.networks.ways import all_ways
from testbed.engines.flow.streams import FlowSender
from testbed.experiment.experiment import UNSCALED, Experiment
from topologies.fabric import Path
from topologies.shaping import tos_of_level
from workloads.iteration.hold import Hold
from workloads.iteration.pcie_semaphore import PcieSemaphore
from workloads.iteration.protocol import ShapeFlows
from workloads.iteration.time_shift import PhaseKeeper
from workloads.job import Flow


class InForce:
    """What decisions change on ``network``; ``present`` returns the jobs that run, ``pcie`` has a table per host.

    ``left``: the fabric without what has failed.
    """

    def __init__(
        self,
        experiment: Experiment,
        network: Network,
        pcie: Mapping[str, PcieSemaphore[FlowSender]],
        present: Callable[[], list[FlowJob]],
    ) -> None:
        self._experiment, self._network, self._pcie, self._present = experiment, network, pcie, present
        self.left = experiment.fabric
        self._levels = {tos_of_level(level, experiment.levels): level for level in range(experiment.levels)}

    def carry_out(self, decision: Decision) -> None:
        """Put ``decision`` in force for the jobs that run."""
        present = self._present()
        for running in present:
            for flow in running.job.flows:
                self._apply(running, flow, decision)
            self._keep_time_shift(running, decision)
        jobs = [running.job for running in present]
        turns = pcie_turns_of(decision, jobs, self._experiment.fabric, self._experiment.levels)
        for host, table in self._pcie.items():
            table.assign(turns.get(host, {}))

    def tell_worker(self, host: str, command: ShapeFlows) -> None:
        """What the coordinator of steps would send to a worker: marks and rates."""
        present = {running.job.name: running for running in self._present()}
        for name, tos in command.job_tos.items():
            if name in present:
                for flow, sender in present[name].out.items():
                    if self._host(present[name].job.flow_by_id[flow].source) == host:
                        self._set_level(sender, self._levels[tos])
        for flow, tos in command.flow_tos.items():
            found = self._sender(flow)
            if found is not None:
                self._set_level(found[1], self._levels[tos])
        for flow, rate in command.rates.items():
            found = self._sender(flow)
            if found is not None:
                self._set_rate(*found, inf if rate is None else rate)

    def way(self, flow: Flow, decision: Decision) -> tuple[str, ...]:
        """The links of the path, and those between PCIe switch and NIC where they are shaped.

        A flow that is cut off when its job arrives has a path of the whole fabric, on which it sends nothing.
        """
        fabric = self._experiment.fabric
        path: Path | None = decision.paths.get(flow.id)
        if path is None:
            path = fabric.candidate_paths(flow.source, flow.target)[0]
        source, target = fabric.ports[flow.source].nic, fabric.ports[flow.target].nic
        first = (fabric.nic_links[source][0].name,) if source in fabric.shaped_nics else ()
        last = (fabric.nic_links[target][1].name,) if target in fabric.shaped_nics else ()
        return (*first, *path, *last)

    def _ways(self, flow: Flow, decision: Decision) -> tuple[tuple[str, ...], ...]:
        """That of the decision, or where packets are spread all between the same ports that failures have left."""
        way = self.way(flow, decision)
        if not self._experiment.spreads:
            return (way,)
        return all_ways(way, self._experiment.fabric, self.left)

    def _apply(self, running: FlowJob, flow: Flow, decision: Decision) -> None:
        sender = running.out[flow.id]
        cut_off = flow.job in decision.cut_off
        self._hold(running, sender, Hold.CUT_OFF, cut_off)
        if cut_off:
            return
        self._network.lead_over(sender.place, *self._ways(flow, decision))
        sender.byte_levels = decision.byte_levels_of(flow)
        self._set_level(sender, decision.level_of(flow, self._experiment.levels - 1))
        self._set_rate(running, sender, decision.rates.get(flow.id, inf) / 8)

    def _set_level(self, sender: FlowSender, level: int) -> None:
        sender.level = level
        sender.settle_level()

    def _set_rate(self, running: FlowJob, sender: FlowSender, bytes_per_s: float) -> None:
        if bytes_per_s > 0.0:
            self._network.set_limit(sender.place, bytes_per_s)
        self._hold(running, sender, Hold.ZERO_RATE, bytes_per_s == 0.0)

    def _hold(self, running: FlowJob, sender: FlowSender, why: Hold, held: bool) -> None:
        """Hold the flow or let it go on; while held, it frees PCIe for those that wait for their turn."""
        before = sender.held & why
        sender.held = sender.held | why if held else sender.held & ~why
        if before != sender.held & why:
            flow = running.job.flow_by_id[sender.flow]
            self._pcie[self._host(flow.source)].changed(flow.id)
            if sender.started:
                sender.send(1)

    def _keep_time_shift(self, running: FlowJob, decision: Decision) -> None:
        """Shifts with a period count from the beginning of the run, those without from that of the job."""
        name = running.job.name
        anchor = 0.0 if name in decision.periods else running.live.began
        time_shift = time_shift_of(decision, name, UNSCALED, anchor)
        for program in running.programs.values():
            kept = None if program.phase_keeper is None else program.phase_keeper.time_shift
            if kept is None or time_shift is None or (kept.shift, kept.period) != (time_shift.shift, time_shift.period):
                program.phase_keeper = None if time_shift is None else PhaseKeeper(time_shift)

    def _sender(self, flow: str) -> tuple[FlowJob, FlowSender] | None:
        for running in self._present():
            if flow in running.out:
                return running, running.out[flow]
        return None

    def _host(self, port: str) -> str:
        return self._experiment.fabric.ports[port].host
