"""Varys (SIGCOMM 2014): the coflow with the smallest effective bottleneck first (SEBF), at the rates of MADD.

MADD gives the flows of a coflow just the rates that let them end together; what is left goes to the
next coflow, and in the end to any flow that can use it. ``varys-priority`` carries out the order by levels
instead of rates. Sizes and capacities are in any one unit and that unit per second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import ClassVar

from controller.decision import JOB_EVENTS, STEP_EVENTS, ClusterView, Decision, Event, Scheduler
from controller.schedulers.common.coflows import HostLinks, StepBook, iteration_demands
from controller.schedulers.common.stable_levels import stable_levels
from topologies.fabric import Fabric
from workloads.job import Job

Coflow = Sequence[tuple[str, str, str, float]]
"""Flows with bytes left: (flow id, ingress port, egress port, size)."""

_ROUNDING = 1e-9
"""A capacity below this share of the port's own is what rounding has left, not capacity."""


def port_loads(coflow: Coflow) -> dict[str, float]:
    """Return port -> size that ``coflow`` sends or receives there."""
    loads: dict[str, float] = {}
    for _, ingress, egress, size in coflow:
        loads[ingress] = loads.get(ingress, 0.0) + size
        loads[egress] = loads.get(egress, 0.0) + size
    return loads


def effective_bottleneck(loads: Mapping[str, float], capacity: Mapping[str, float]) -> float:
    """Return Gamma: the seconds of the port that needs longest for ``loads`` (Varys section 5.3.1).

    Infinite where a port it needs has no ``capacity`` left.
    """
    return max((load / capacity[port] if capacity[port] > 0 else inf for port, load in loads.items()), default=0.0)


def allocate(coflows: Mapping[str, Coflow], capacity: Mapping[str, float], conserve: bool = True) -> dict[str, float]:
    """Return flow id -> rate: SEBF order, MADD rates, then (``conserve``) work conservation. 0 holds a flow back.

    ``coflows`` are in order of arrival, which breaks ties. A coflow that needs a port with nothing
    left is skipped. What MADD leaves is shared evenly among the flows of skipped coflows, and what then
    is left goes flow by flow to all, the earliest coflow first.
    """
    loads = {name: port_loads(coflow) for name, coflow in coflows.items()}
    left = {port: capacity[port] for load in loads.values() for port in load}
    order = sorted(coflows, key=lambda name: effective_bottleneck(loads[name], left))
    rates = {flow: 0.0 for coflow in coflows.values() for flow, _, _, _ in coflow}
    skipped: list[Coflow] = []
    for name in order:
        bottleneck = effective_bottleneck(loads[name], left)
        if bottleneck == inf:
            skipped.append(coflows[name])
            continue
        rates.update((flow, size / bottleneck) for flow, _, _, size in coflows[name])
        for port, load in loads[name].items():
            free = left[port] - load / bottleneck
            left[port] = free if free > _ROUNDING * capacity[port] else 0.0
    if conserve:
        _share_evenly([flow for coflow in skipped for flow in coflow], rates, left)
        _hand_out([flow for coflow in coflows.values() for flow in coflow], rates, left)
    return rates


def _share_evenly(flows: Coflow, rates: dict[str, float], left: dict[str, float]) -> None:
    """Give each of ``flows`` its even share of the tighter of its two ports."""
    count: dict[str, int] = {}
    for _, ingress, egress, _ in flows:
        count[ingress] = count.get(ingress, 0) + 1
        count[egress] = count.get(egress, 0) + 1
    share = {port: left[port] / flows_here for port, flows_here in count.items()}
    for flow, ingress, egress, _ in flows:
        rate = min(share[ingress], share[egress])
        rates[flow] = rate
        left[ingress] = max(0.0, left[ingress] - rate)
        left[egress] = max(0.0, left[egress] - rate)


def _hand_out(flows: Coflow, rates: dict[str, float], left: dict[str, float]) -> None:
    """Give each of ``flows`` in turn all that its two ports have left."""
    for flow, ingress, egress, _ in flows:
        extra = min(left[ingress], left[egress])
        if extra > 0:
            rates[flow] += extra
            left[ingress] -= extra
            left[egress] -= extra


def sebf_order(fabric: Fabric, jobs: Sequence[Job]) -> tuple[str, ...]:
    """Return the names of the ``jobs`` that send by rising effective bottleneck of one iteration's bytes.

    Ports are the directions of host cables. ``jobs`` are in order of arrival, which breaks ties.
    """
    return _by_bottleneck(iteration_demands(fabric, jobs))


def even_levels(order: Sequence[str], levels: int) -> dict[str, int]:
    """Return name -> level with ``order`` split evenly: ``floor(rank * levels / n)``."""
    return {name: rank * levels // len(order) for rank, name in enumerate(order)}


def _by_bottleneck(seconds: Mapping[str, Mapping[str, float]]) -> tuple[str, ...]:
    """Names by rising seconds of their most loaded port; those without load are left out."""
    longest = {name: max(demand.values()) for name, demand in seconds.items() if demand}
    return tuple(sorted(longest, key=lambda name: longest[name]))


class Varys(Scheduler):
    """A rate per flow of the communication steps under way, in bit/s of payload; 0 holds it back.

    Ports are the directions of host cables, paths are those of ECMP. A flow with nothing left to
    send has no rate.
    """

    name: ClassVar[str] = "varys"
    summary: ClassVar[str] = "rates: smallest effective bottleneck first, all flows of a step end together"
    events = JOB_EVENTS | STEP_EVENTS
    decides: ClassVar[tuple[str, ...]] = ("rates",)
    source: ClassVar[str] = "Chowdhury et al., SIGCOMM 2014, section 5"

    def __init__(self) -> None:
        self._steps = StepBook()

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return the rates of all flows that have bytes of a step left."""
        coflows = {step.job: _in_bits(step.remaining.items(), links) for step, links in self._steps.under_way(view)}
        used = dict.fromkeys(port for coflow in coflows.values() for flow in coflow for port in flow[1:3])
        return Decision(rates=allocate(coflows, {port: view.fabric.links[port].capacity for port in used}))


def _in_bits(remaining: Iterable[tuple[str, float]], links: HostLinks) -> Coflow:
    """The flows with bytes left between their host links, sizes in bits."""
    return [(flow, *links[flow], 8 * size) for flow, size in remaining if size > 0]


class VarysPriority(Scheduler):
    """The SEBF order of the communication steps under way as levels, split evenly (Crux figure 13).

    A job between two steps has no entry and so the lowest level. With no more steps than levels, levels in
    force stay where they express the order (:mod:`controller.schedulers.common.stable_levels`).
    """

    name: ClassVar[str] = "varys-priority"
    summary: ClassVar[str] = "levels: smallest effective bottleneck first, split evenly"
    events = JOB_EVENTS | STEP_EVENTS
    decides: ClassVar[tuple[str, ...]] = ("levels",)
    source: ClassVar[str] = "Chowdhury et al., SIGCOMM 2014, section 5; Cao et al., SIGCOMM 2024, figure 13"

    def __init__(self) -> None:
        self._steps = StepBook()

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return a level per job with a step under way, marked by the sender."""
        order = _by_bottleneck(self._steps.demands(view))
        levels = stable_levels(order, view.decision.levels, even_levels(order, view.level_count), view.level_count)
        return Decision(levels=levels, sender_marked=True)
