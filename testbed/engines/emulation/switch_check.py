"""Whether the switches do what was decided: asked of the controller, and of what really forwards.

The controller compares the rules of all switches with the decision, which takes seconds of CPU on a large fabric. Where
the kernel's own table forwards, that is asked once for each decision and again whenever the switches report other rules
than before; in between, packets are counted along the decided paths by the table's counters alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from controller.decision import Decision
from controller.service.messages import VerificationAnswer
from testbed.engines.emulation.controller_process import ControllerProcess
from topologies.addressing import address_of
from topologies.fabric import Fabric
from topologies.mininet_adapter.datapaths.interface import Counters, Datapath, Forwarding
from topologies.network.load_balancing import SpreadCount
from workloads.job import Flow


class SwitchCheck:
    """Checks the switches of a run. ``flows`` returns the flows that are there now.

    ``spread``: packets of a flow take all of its paths, so they are counted at the first and the last switch alone.
    """

    def __init__(
        self,
        fabric: Fabric,
        datapath: Datapath,
        controller: ControllerProcess,
        flows: Callable[[], Iterable[Flow]],
        *,
        spread: bool = False,
    ) -> None:
        self._fabric = fabric
        self._datapath = datapath
        self._controller = controller
        self._flows = flows
        self._spread = spread
        self.spread: tuple[SpreadCount, ...] = ()
        self._verified: tuple[Decision, int] | None = None
        self.unruled_packets = 0

    async def into_force(self) -> None:
        """Return when packets follow the rules that the switches have confirmed."""
        await asyncio.to_thread(self._datapath.carry_out)

    async def check(self, decision: Decision, thorough: bool) -> VerificationAnswer:
        """What on the switches is not as decided, and the packets counted along each flow's path.

        ``thorough``: ask the controller even if the switches report the same rules as when it was asked last.
        """
        await self.into_force()
        read = await asyncio.to_thread(self._datapath.read_back)
        if read is None:
            return await self._controller.verification()
        self.unruled_packets = read.dropped
        self.spread = read.spread
        answer = await self._compared(decision, read, thorough)
        return replace(answer, mismatches=(*answer.mismatches, *read.mismatches))

    def document(self) -> dict[str, object]:
        """What was counted, for the record: packets without a rule, and those that groups have spread."""
        spread = [each._asdict() for each in self.spread]
        return {"packets_without_a_rule": self.unruled_packets, **({"spread": spread} if spread else {})}

    async def _compared(self, decision: Decision, read: Forwarding, thorough: bool) -> VerificationAnswer:
        if not thorough and self._verified is not None:
            known, changes = self._verified
            if known is decision and changes == read.changes:
                packets = counted_along_paths(self._fabric, self._flows(), decision, read.counters, spread=self._spread)
                return VerificationAnswer((), 0, packets)
        answer = await self._controller.verification(read.counters)
        self._verified = None if answer.mismatches else (decision, read.changes)
        return answer


def counted_along_paths(
    fabric: Fabric, flows: Iterable[Flow], decision: Decision, counters: Counters, *, spread: bool = False
) -> dict[str, tuple[int, ...]]:
    """Return flow -> packets counted at each switch of its decided path, 0 where a switch has no rule for it.

    ``spread``: at the first and the last one, which all paths have.
    """
    found = {}
    for flow in flows:
        path = decision.paths.get(flow.id)
        if path is None:
            continue
        text = _five_tuple(fabric, flow, decision.ports)
        into = tuple(dict.fromkeys((path[0], path[-2]))) if spread else path[:-1]
        found[flow.id] = tuple(counters.get(fabric.links[link].target, {}).get(text, 0) for link in into)
    return found


def _five_tuple(fabric: Fabric, flow: Flow, ports: Mapping[str, int]) -> str:
    source, target = address_of(fabric, flow.source), address_of(fabric, flow.target)
    return f"{source}:{ports.get(flow.id, flow.source_port)} > {target}:{flow.target_port}"
