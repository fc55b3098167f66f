"""Hedera (NSDI 2010): big flows leave their hashed paths for ones with room; demand is estimated, not measured.

What a flow would send if only NICs limited it is its estimated demand: max-min fair shares over the
source and target ports. Flows above a tenth of the link rate are placed by global first fit, each
on the first path where its demand fits on every link, and the demand is reserved there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from controller.decision import ClusterView, Decision, Event, Scheduler
from topologies.fabric import Fabric, Path
from workloads.job import Flow

BIG = 0.1
"""Share of the link rate above which a flow is big (Hedera section 4)."""

_ROUNDING = 1e-9

PortPair = tuple[str, str]
"""Source port and target port of a flow."""


class _Share:
    """The estimator's state of a flow: its demand so far, and whether a full target has settled it."""

    __slots__ = ("demand", "settled", "source", "target")

    def __init__(self, source: str, target: str) -> None:
        self.source, self.target = source, target
        self.demand, self.settled = 0.0, False


def estimate_demands(pairs: Sequence[PortPair], capacity: Mapping[str, float]) -> list[float]:
    """Return the estimated demand of the flow between each pair of ports (Hedera section 4.2).

    Sources share their capacity evenly among flows that no target has settled yet; targets that get
    more than their capacity settle their flows at an even share, except those that bring less.
    Repeated until nothing changes. ``capacity``: port -> rate; demands are in its unit.
    """
    shares = [_Share(source, target) for source, target in pairs]
    from_port: dict[str, list[_Share]] = {}
    to_port: dict[str, list[_Share]] = {}
    for share in shares:
        from_port.setdefault(share.source, []).append(share)
        to_port.setdefault(share.target, []).append(share)
    for _ in range(2 * len(shares) + 2):  # rounds settle flows until none changes; the bound guards against rounding
        before = [(share.demand, share.settled) for share in shares]
        for port, sent in from_port.items():
            _share_source(sent, capacity[port])
        for port, received in to_port.items():
            _limit_target(received, capacity[port])
        if before == [(share.demand, share.settled) for share in shares]:
            break
    return [share.demand for share in shares]


def _share_source(sent: Sequence[_Share], capacity: float) -> None:
    """Split evenly what the settled flows of a source leave."""
    open_flows = [share for share in sent if not share.settled]
    left = capacity - sum(share.demand for share in sent if share.settled)
    for share in open_flows:
        share.demand = max(0.0, left) / len(open_flows)


def _limit_target(received: Sequence[_Share], capacity: float) -> None:
    """Settle the flows of a target that gets too much; those below the even share bring all they can."""
    if sum(share.demand for share in received) <= capacity * (1 + _ROUNDING):
        return
    limited, left = list(received), capacity
    while True:
        even = left / len(limited)
        below = [share for share in limited if share.demand < even]
        if not below:
            break
        left -= sum(share.demand for share in below)
        limited = [share for share in limited if share.demand >= even]
    for share in limited:
        share.demand, share.settled = even, True


def first_fit(fabric: Fabric, demands: Sequence[tuple[Flow, float]]) -> dict[str, Path]:
    """Return flow id -> path by global first fit (Hedera section 4.3.1); a flow that fits nowhere is left out.

    Flows are taken as listed with their demand in bit/s, candidate paths in their fixed order. What a
    placed flow demands is reserved on every link of its path.
    """
    free = {link.name: link.capacity * (1 + _ROUNDING) for link in fabric.network_links}
    paths: dict[str, Path] = {}
    for flow, demand in demands:
        for path in fabric.candidate_paths(flow.source, flow.target):
            if all(free[link] >= demand for link in path):
                paths[flow.id] = path
                for link in path:
                    free[link] -= demand
                break
    return paths


class Hedera(Scheduler):
    """Paths for big flows by global first fit; all other flows, and those that fit nowhere, keep their ECMP path.

    ``threshold``: share of the slower of a flow's two host links above which its estimated demand
    makes it big. All running jobs count as sending.
    """

    name: ClassVar[str] = "hedera"
    summary: ClassVar[str] = "big flows on the first path with room for their estimated demand"
    decides: ClassVar[tuple[str, ...]] = ("paths",)
    source: ClassVar[str] = "Al-Fares et al., NSDI 2010, section 4"

    def __init__(self, *, threshold: float = BIG) -> None:
        if isinstance(threshold, bool) or not isinstance(threshold, int | float) or not 0 <= threshold < 1:
            raise ValueError(f"option 'threshold' of hedera must be a number from 0 to below 1, not '{threshold}'")
        self._threshold = threshold

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return the paths of the big flows that found room."""
        flows = [flow for flow in view.flows if flow.bytes > 0]
        rate = {port: view.fabric.uplink(port).capacity for flow in flows for port in (flow.source, flow.target)}
        demands = estimate_demands([(flow.source, flow.target) for flow in flows], rate)
        big = [
            (flow, demand)
            for flow, demand in zip(flows, demands, strict=True)
            if demand > self._threshold * min(rate[flow.source], rate[flow.target])
        ]
        return Decision(paths=first_fit(view.fabric, big))
