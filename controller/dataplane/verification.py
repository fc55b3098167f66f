"""Whether the switches did what was decided: rules read back, and the paths that packets were counted on. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from controller.dataplane.rules import FlowRule, Match, RuleBuilder, RuleCount
from topologies.addressing import port_numbers
from topologies.fabric import Fabric, Path
from workloads.job import Flow


def rule_mismatches(expected: Iterable[FlowRule], counts: Iterable[RuleCount]) -> tuple[str, ...]:
    """Return one line for every rule that a switch lacks, holds in another form, or should not hold."""
    wanted = {rule.key: rule for rule in expected}
    held = {count.rule.key: count.rule for count in counts}
    missing = [rule for key, rule in wanted.items() if key not in held]
    lines = [f"switch {rule.switch} lacks the rule of {_tuple(rule)}" for rule in missing]
    for key, rule in held.items():
        if key not in wanted:
            lines.append(f"switch {rule.switch} holds a rule of {_tuple(rule)} that nobody decided")
        elif rule != wanted[key]:
            lines.append(f"switch {rule.switch} treats {_tuple(rule)} otherwise than decided")
    return tuple(lines)


def path_packets(rules: Mapping[str, Sequence[FlowRule]], counts: Iterable[RuleCount]) -> dict[str, tuple[int, ...]]:
    """Return flow -> the packets that its ``rules`` counted, in their order; 0 where a switch lacks one."""
    packets = {count.rule.key: count.packets for count in counts}
    return {flow: tuple(packets.get(rule.key, 0) for rule in along) for flow, along in rules.items()}


def path_mismatches(rules: Mapping[str, Sequence[FlowRule]], counts: Iterable[RuleCount]) -> tuple[str, ...]:
    """Return one line for every flow whose packets were seen at its first switch, but not at another of its path.

    ``rules``: flow id -> the rules of its data, switch by switch along its path.
    """
    lines: list[str] = []
    for flow, seen in path_packets(rules, counts).items():
        along = rules[flow]
        if seen and seen[0] > 0 and 0 in seen:
            lines.append(f"no packet of flow {flow} passed switch {along[seen.index(0)].switch} of its path")
    return tuple(lines)


def _tuple(rule: FlowRule) -> str:
    match = rule.match
    return f"{match.source}:{match.source_port} > {match.target}:{match.target_port}"


def recounted(counts: Iterable[RuleCount], counters: Mapping[str, Mapping[str, int]]) -> list[RuleCount]:
    """Return ``counts`` with the packets of ``counters`` (switch -> five-tuple -> packets), 0 where those have none."""
    return [replace(c, packets=counters.get(c.rule.switch, {}).get(_tuple(c.rule), 0)) for c in counts]


def observed_paths(fabric: Fabric, flows: Iterable[Flow], counts: Iterable[RuleCount]) -> dict[str, Path | None]:
    """Return flow id -> the path its data packets took, None while no packet has been counted.

    At each hop the next link is the one whose rule at the far switch, told apart by the port the
    packet came in by, has counted most packets.
    """
    packets = {count.rule.key: count.packets for count in counts}
    builder, numbers = RuleBuilder(fabric), port_numbers(fabric)
    return {flow.id: _observed(fabric, flow, builder.match(flow), numbers, packets) for flow in flows}


def _observed(
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
