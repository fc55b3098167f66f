"""An OpenFlow network in memory: real messages, fake tables, and the path of a packet through them.

Messages are built and serialised like those for real switches; flow mods are parsed back from
their bytes. Proves without root or sockets that flows reach their NIC over the decided path.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from controller.dataplane import openflow
from controller.dataplane.network import NetworkError, RuleBatch
from controller.dataplane.rules import Actions, FlowRule, Match, RuleCount
from controller.dataplane.ryu_compat import ofproto_parser, ofproto_protocol, ofproto_v1_3
from topologies.addressing import address_of, port_numbers
from topologies.fabric import Fabric, Path


@dataclass(frozen=True, slots=True)
class Packet:
    """A TCP packet: its five-tuple, and the fields that switches set."""

    match: Match
    dscp: int = 0
    eth_dst: str = ""


@dataclass(frozen=True, slots=True)
class Walk:
    """Where a packet went: the links it took, the port it reached (None: dropped), and how it looked at each hop."""

    links: Path
    reached: str | None
    packets: tuple[Packet, ...]


@dataclass
class TableEntry:
    """A flow table entry and the packets it has matched."""

    rule: FlowRule
    packets: int = 0


@dataclass
class Table:
    """The tables of one switch; entries by priority and match, the miss as ``None``."""

    entries: dict[int, dict[Match | None, TableEntry]] = field(default_factory=dict)
    groups: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def lookup(self, match: Match, in_port: int) -> TableEntry | None:
        """Return the entry of the highest priority that matches, None on a miss."""
        for priority in sorted(self.entries, reverse=True):
            held = self.entries[priority]
            for key in (replace(match, in_port=in_port), match, None):
                if key in held:
                    return held[key]
        return None


class MemoryNetwork:
    """Implements :class:`controller.dataplane.network.Network`. ``log`` holds every batch that was applied."""

    def __init__(self, fabric: Fabric | None = None) -> None:
        self._protocol: Any = ofproto_protocol.ProtocolDesc(ofproto_v1_3.OFP_VERSION)
        self.log: list[RuleBatch] = []
        self.away: set[str] = set()
        self.tables: dict[str, Table] = {}
        if fabric is not None:
            self.reset(fabric)

    def reset(self, fabric: Fabric) -> None:
        """Start over with empty tables on ``fabric``."""
        self.fabric = fabric
        self._numbers = port_numbers(fabric)
        self._link_at = {(fabric.links[name].source, number): name for name, number in self._numbers.items()}
        self.tables = {switch: Table() for switch in fabric.switches}
        for switch in self.tables:
            for message in openflow.wipe(self._protocol):
                self._receive(switch, message)

    def expect(self, switches: Collection[str]) -> None:
        """Only ``switches`` are there."""
        self.tables = {switch: table for switch, table in self.tables.items() if switch in switches}

    def connected(self) -> Mapping[str, bool]:
        """Every switch is there unless its name is in ``away``."""
        return {switch: switch not in self.away for switch in self.tables}

    def apply(self, batch: RuleBatch) -> None:
        """Carry ``batch`` out at once; ``NetworkError`` for a switch that is away."""
        self.log.append(batch)
        protocol = self._protocol
        steps = [
            (group.switch, mod(protocol, group))
            for group in batch.groups
            for mod in (openflow.delete_group, openflow.add_group)
        ]
        steps += [(rule.switch, openflow.add_rule(protocol, rule)) for rule in batch.add]
        steps += [(rule.switch, openflow.delete_rule(protocol, rule)) for rule in batch.delete]
        for switch, message in steps:
            if switch in self.away or switch not in self.tables:
                raise NetworkError(f"switch {switch} is not connected")
            self._receive(switch, message)

    def read(self) -> Sequence[RuleCount]:
        """Return every flow rule with its packet count; the miss entries are not flow rules."""
        return [
            RuleCount(entry.rule, entry.packets)
            for table in self.tables.values()
            for held in table.entries.values()
            for match, entry in held.items()
            if match is not None
        ]

    def _receive(self, switch: str, message: Any) -> None:
        message.xid = 1
        message.serialize()
        ofproto = self._protocol.ofproto
        table = self.tables[switch]
        if message.msg_type == ofproto.OFPT_GROUP_MOD:
            self._group_mod(table, message)
            return
        version, kind, length, xid = ofproto_parser.header(bytes(message.buf))
        parsed = ofproto_parser.msg(self._protocol, version, kind, length, xid, bytes(message.buf))
        self._flow_mod(switch, table, parsed)

    def _group_mod(self, table: Table, message: Any) -> None:
        ofproto = self._protocol.ofproto
        if message.command == ofproto.OFPGC_DELETE and message.group_id == ofproto.OFPG_ALL:
            table.groups.clear()
        elif message.command == ofproto.OFPGC_DELETE:
            table.groups.pop(message.group_id, None)
            for held in table.entries.values():  # as a switch does: a flow cannot use what is not there
                for match in [match for match, entry in held.items() if entry.rule.actions.group == message.group_id]:
                    del held[match]
        elif message.group_id in table.groups:
            raise NetworkError(f"group {message.group_id} exists")
        else:
            table.groups[message.group_id] = tuple(bucket.actions[0].port for bucket in message.buckets)

    def _flow_mod(self, switch: str, table: Table, message: Any) -> None:
        ofproto = self._protocol.ofproto
        match = openflow.read_match(message.match)
        if message.command == ofproto.OFPFC_DELETE:
            table.entries.clear()
        elif message.command == ofproto.OFPFC_DELETE_STRICT:
            table.entries.get(message.priority, {}).pop(match, None)
        else:
            actions = openflow.read_actions(message.instructions)
            if actions.group is not None and actions.group not in table.groups:
                raise NetworkError(f"switch {switch} has no group {actions.group}")
            held = match if match is not None else Match("", "", 0, 0)
            rule = FlowRule(switch, message.priority, held, actions, message.cookie)
            table.entries.setdefault(message.priority, {})[match] = TableEntry(rule)

    def walk(self, source: str, match: Match) -> Walk:
        """Send a packet of the five-tuple ``match`` from port ``source`` and follow it.

        Raises ``NetworkError`` if it comes to a switch twice.
        """
        link = self.fabric.links_from[source][0]
        packet, links = Packet(match), [link.name]
        packets: list[Packet] = []
        seen: set[str] = set()
        while link.target in self.tables:
            if link.target in seen:
                raise NetworkError(f"a packet comes to switch {link.target} twice")
            seen.add(link.target)
            entry = self.tables[link.target].lookup(match, self._numbers[link.reverse])
            output = None if entry is None else self._output(link.target, entry.rule.actions, match)
            if entry is None or output is None:
                return Walk(tuple(links), None, tuple(packets))
            entry.packets += 1
            packet = _changed(packet, entry.rule.actions)
            link = self.fabric.links[self._link_at[link.target, output]]
            links.append(link.name)
            packets.append(packet)
        arrived = link.target if match.target in self._addresses(link.target) else None
        return Walk(tuple(links), arrived, tuple(packets))

    def _addresses(self, port: str) -> set[str]:
        """What a port takes packets for: the addresses of all ports of its NIC."""
        return {address_of(self.fabric, each) for each in self.fabric.nics[self.fabric.ports[port].nic].ports}

    def _output(self, switch: str, actions: Actions, match: Match) -> int | None:
        if actions.group is None:
            return actions.output
        outputs = self.tables[switch].groups[actions.group]
        digest = blake2b(f"{switch}|{match}".encode(), digest_size=4).digest()
        return outputs[int.from_bytes(digest, "big") % len(outputs)]


def _changed(packet: Packet, actions: Actions) -> Packet:
    return Packet(
        packet.match,
        packet.dscp if actions.dscp is None else actions.dscp,
        packet.eth_dst if actions.eth_dst is None else actions.eth_dst,
    )
