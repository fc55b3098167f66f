"""Forwarding rules as values: what the switches must hold so that a decision is in force.

Each flow has exact five-tuple rules at every switch of its path, for its data and, along the
reverse path and at the highest level, for its acknowledgements; on a two-way connection these are packets of the
opposite flow. The first switch sets the DSCP of the level, unless levels change with every message: then it trusts
the hosts. The last one sets the MAC address of the target port. Everything else is dropped.

Where packets are spread, switches have select groups of all links on the way, and acknowledgements keep to one path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from types import MappingProxyType

from controller.decision import Decision
from topologies.addressing import address_of, mac_of, port_numbers
from topologies.fabric import Fabric, Path
from topologies.shaping import ACKNOWLEDGEMENT_LEVEL, dscp_of_level
from workloads.job import Flow

PRIORITY = 100
"""OpenFlow priority of flow rules; the table miss has 0."""


@dataclass(frozen=True, slots=True)
class Match:
    """An exact TCP five-tuple; with ``in_port`` also the OpenFlow port that the packet came in by."""

    source: str
    target: str
    source_port: int
    target_port: int
    in_port: int | None = None

    def swapped(self) -> Match:
        """The five-tuple of the opposite direction."""
        return Match(self.target, self.source, self.target_port, self.source_port)


@dataclass(frozen=True, slots=True)
class Actions:
    """What a switch does with a packet, in this order; exactly one of ``output`` and ``group`` is given.

    Only the first switch of a path sets ``dscp``.
    """

    dscp: int | None = None
    eth_dst: str | None = None
    output: int | None = None
    group: int | None = None


@dataclass(frozen=True, slots=True)
class FlowRule:
    """One entry of a switch's flow table. ``cookie`` names the flow (:func:`cookie_of`)."""

    switch: str
    priority: int
    match: Match
    actions: Actions
    cookie: int

    @property
    def key(self) -> tuple[str, Match]:
        """Two rules with the same key cannot both be in a table: the later replaces the earlier."""
        return self.switch, self.match

    @property
    def is_first(self) -> bool:
        """Whether this is the rule at the first switch that sets the level."""
        return self.actions.dscp is not None


@dataclass(frozen=True, slots=True)
class GroupRule:
    """A select group: the switch hashes each flow to one of the ``outputs`` (OpenFlow port numbers)."""

    switch: str
    group: int
    outputs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RuleCount:
    """A rule read back from a switch, and the packets it has matched."""

    rule: FlowRule
    packets: int


def cookie_of(flow: str) -> int:
    """Return the 63-bit cookie of the flow id ``flow``: the same in every process."""
    return int.from_bytes(blake2b(flow.encode(), digest_size=8).digest(), "big") >> 1


_MadeOf = tuple[Flow, tuple[Path, ...], int | None]
"""Of a plan: the flow, its path or those that it is hashed over, and the DSCP of its data."""


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """The rules of one flow, data and acknowledgements, and the groups that they use; ``made_of`` determines both.

    ``along``: those by which all of its data passes, one after the other; none where switches hash it.
    """

    rules: tuple[FlowRule, ...]
    groups: tuple[GroupRule, ...] = ()
    along: tuple[FlowRule, ...] = ()
    made_of: _MadeOf | None = field(default=None, compare=False, repr=False)


class RuleBuilder:
    """Builds the rules of flows on one fabric; addresses and port numbers are looked up once.

    ``spread``: the packets of every flow take all of its paths, whichever is decided.
    """

    def __init__(self, fabric: Fabric, *, spread: bool = False) -> None:
        self._fabric = fabric
        self.spread = spread
        self._numbers = port_numbers(fabric)
        self._address = {port: address_of(fabric, port) for port in fabric.ports}

    def match(self, flow: Flow) -> Match:
        """Return the five-tuple of the data of ``flow``."""
        return Match(self._address[flow.source], self._address[flow.target], flow.source_port, flow.target_port)

    def plan(self, flow: Flow, paths: Sequence[Path], dscp: int | None) -> FlowPlan:
        """Return the rules that carry ``flow`` over its path; where there are several, hash it or spread it over them.

        Those of a flow on a two-way connection carry one direction alone: the other flow's carry the other.
        ``dscp``, of the data; None leaves the hosts' marks as they are.
        """
        match, cookie = self.match(flow), cookie_of(flow.id)
        returning = [paths[cookie % len(paths)]] if self.spread else paths
        back = [tuple(self._fabric.links[link].reverse for link in reversed(path)) for path in returning]
        rules: list[FlowRule] = []
        groups: list[GroupRule] = []
        back_dscp = None if dscp is None else dscp_of_level(ACKNOWLEDGEMENT_LEVEL)
        data = (match, paths, dscp)
        both = (data,) if flow.two_way else (data, (match.swapped(), back, back_dscp))
        for direction, choices, mark in both:
            target = self._fabric.links[choices[0][-1]].target
            for rule, group in self._hops(direction, choices, mac_of(self._fabric, target), mark, cookie):
                rules.append(rule)
                if group is not None:
                    groups.append(group)
        along = self._along([rule for rule in rules if replace(rule.match, in_port=None) == match], len(paths))
        return FlowPlan(tuple(rules), tuple(dict.fromkeys(groups)), along, (flow, tuple(paths), dscp))

    def _along(self, data: Sequence[FlowRule], paths: int) -> tuple[FlowRule, ...]:
        if self.spread:
            return tuple(dict.fromkeys((data[0], data[-1])))
        return tuple(data) if paths == 1 else ()

    def _hops(
        self, match: Match, paths: Sequence[Path], eth_dst: str, dscp: int | None, cookie: int
    ) -> Iterator[tuple[FlowRule, GroupRule | None]]:
        """One rule per switch of a path; where paths are hashed one per link into it, to count packets by link."""
        last = len(paths[0]) - 1
        by_link = len(paths) > 1 and not self.spread
        for hop in range(1, last + 1):
            for incoming, outgoing in self._choices(paths, hop, by_link).items():
                switch = self._fabric.links[incoming].target
                in_port = None
                if by_link and hop > 1:
                    in_port = self._numbers[self._fabric.links[incoming].reverse]
                group = None if len(outgoing) == 1 else self._group(switch, outgoing)
                actions = Actions(
                    dscp=dscp if hop == 1 else None,
                    eth_dst=eth_dst if hop == last else None,
                    output=self._numbers[outgoing[0]] if group is None else None,
                    group=None if group is None else group.group,
                )
                where = Match(match.source, match.target, match.source_port, match.target_port, in_port)
                yield FlowRule(switch, PRIORITY, where, actions, cookie), group

    def _choices(self, paths: Sequence[Path], hop: int, by_link: bool) -> dict[str, tuple[str, ...]]:
        """A link at ``hop`` - 1 -> the links that continue at ``hop``: ``by_link`` from it, else from its switch."""
        found: dict[str, dict[str, None]] = {}
        first: dict[str, str] = {}
        for path in paths:
            incoming = path[hop - 1]
            if not by_link:
                incoming = first.setdefault(self._fabric.links[incoming].target, incoming)
            found.setdefault(incoming, {})[path[hop]] = None
        return {incoming: tuple(outgoing) for incoming, outgoing in found.items()}

    def _group(self, switch: str, outgoing: Sequence[str]) -> GroupRule:
        outputs = tuple(self._numbers[link] for link in outgoing)
        digest = blake2b(repr(outputs).encode(), digest_size=4).digest()
        return GroupRule(switch, int.from_bytes(digest, "big") >> 2, outputs)


def plans_of(
    builder: RuleBuilder,
    fabric: Fabric,
    flows: Sequence[Flow],
    decision: Decision,
    levels: int,
    before: Mapping[str, FlowPlan] = MappingProxyType({}),
    addressed: Mapping[str, Flow] = MappingProxyType({}),
) -> dict[str, FlowPlan]:
    """Return flow id -> its rules under ``decision``; every flow has a path or is hashed by the switches.

    ``flows`` have the ports between which packets travel; ``addressed``, by id, those whose addresses the packets have,
    where these are other ports of the same NICs. Where the decision gives a flow a source port, its rules match that.
    ``before``: earlier plans, kept where path and level are the same. Raises ``ValueError`` for a flow without either,
    a path that does not join its ports, or a level outside 0 .. ``levels`` - 1.
    """
    hashed = set(decision.hashed)
    plans: dict[str, FlowPlan] = {}
    for flow in flows:
        candidates = fabric.candidate_paths(flow.source, flow.target)
        if flow.id in hashed or builder.spread:
            paths: tuple[Path, ...] = candidates
        elif decision.paths.get(flow.id) in candidates:
            paths = (decision.paths[flow.id],)
        else:
            raise ValueError(f"flow '{flow.id}' has no path among its candidates")
        dscp = None if decision.trusts_sender(flow) else dscp_of_level(decision.level_of(flow, levels - 1), levels)
        sent = addressed.get(flow.id, flow)
        if flow.id in decision.ports:
            sent = replace(sent, source_port=decision.ports[flow.id])
        known = before.get(flow.id)
        if known is None or known.made_of != (sent, paths, dscp):
            known = builder.plan(sent, paths, dscp)
        plans[flow.id] = known
    return plans


@dataclass(frozen=True, slots=True)
class Update:
    """The steps from old rules to new ones without a moment at which a packet of the flow has no rule.

    A barrier separates the steps. ``add_downstream`` disturbs no packet. ``replace_downstream`` (a
    switch on both paths that sends elsewhere) and ``flip_at_first_switch`` move the flow.
    ``delete`` holds the rules that no packet reaches any more. While the middle step is partly done,
    each switch still has a rule for every packet and brings it nearer to its target.
    """

    add_downstream: tuple[FlowRule, ...] = ()
    replace_downstream: tuple[FlowRule, ...] = ()
    flip_at_first_switch: tuple[FlowRule, ...] = ()
    delete: tuple[FlowRule, ...] = ()

    @property
    def moves(self) -> tuple[FlowRule, ...]:
        """The rules of the middle step."""
        return self.replace_downstream + self.flip_at_first_switch


def joined(updates: Sequence[Update]) -> Update:
    """Return all ``updates`` as one."""
    return Update(
        tuple(rule for update in updates for rule in update.add_downstream),
        tuple(rule for update in updates for rule in update.replace_downstream),
        tuple(rule for update in updates for rule in update.flip_at_first_switch),
        tuple(rule for update in updates for rule in update.delete),
    )


def diff(old: Sequence[FlowRule], new: Sequence[FlowRule]) -> Update:
    """Return the update from the rules ``old`` to ``new``. Where there is no old rule, nothing needs a flip."""
    before, after = {rule.key: rule for rule in old}, {rule.key: rule for rule in new}
    added = [rule for key, rule in after.items() if key not in before]
    changed = [rule for key, rule in after.items() if key in before and before[key] != rule]
    return Update(
        add_downstream=tuple(added),
        replace_downstream=tuple(rule for rule in changed if not rule.is_first),
        flip_at_first_switch=tuple(rule for rule in changed if rule.is_first),
        delete=tuple(rule for key, rule in before.items() if key not in after),
    )
