"""Which way the switches' own hashing sent each flow, told by the packet counters of the rules behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controller.rules import Match, RuleBuilder, RuleCount
from topologies.addressing import port_numbers
from topologies.fabric import Fabric, Path
from workloads.job import Flow


def taken_paths(
    fabric: Fabric, flows: Iterable[Flow], counts: Iterable[RuleCount]
) -> dict[str, Path | None]:
    """Return flow id -> the path its data packets took, None while no packet has been counted.

    At each hop the next link is the one whose rule at the far switch, told apart by the port the
    packet came in by, has counted most packets.
    """
    packets = {count.rule.key: count.packets for count in counts}
    builder, numbers = RuleBuilder(fabric), port_numbers(fabric)
    return {flow.id: _taken(fabric, flow, builder.match(flow), numbers, packets) for flow in flows}


def _taken(
    fabric: Fabric,
    flow: Flow,
    match: Match,
    numbers: Mapping[str, int],
    packets: Mapping[tuple[str, Match], int],
) -> Path | None:
    remaining = fabric.candidate_paths(flow.source, flow.target)

    def counted(link: str) -> int:
        end, in_port = fabric.links[link].target, numbers[fabric.links[link].reverse]
        where = Match(match.source, match.target, match.source_port, match.target_port, in_port)
        return packets.get((end, where), 0)

    for hop in range(1, len(remaining[0]) - 1):
        links = tuple(dict.fromkeys(path[hop] for path in remaining))
        if len(links) > 1 or hop == 1:
            best = max(links, key=counted)
            if counted(best) == 0:
                return None
            remaining = tuple(path for path in remaining if path[hop] == best)
    return remaining[0]
