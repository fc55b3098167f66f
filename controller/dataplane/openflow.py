"""The one module that builds OpenFlow 1.3 messages from rules, and reads rules from replies.

``datapath`` is any object with ``ofproto`` and ``ofproto_parser``: a connected switch or, in
tests, a protocol description.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from controller.dataplane.rules import Actions, FlowRule, GroupRule, Match, RuleCount

_ETH_IPV4 = 0x0800
_IP_TCP = 6


def _match(datapath: Any, match: Match) -> Any:
    given: dict[str, object] = {
        "eth_type": _ETH_IPV4,
        "ip_proto": _IP_TCP,
        "ipv4_src": match.source,
        "ipv4_dst": match.target,
        "tcp_src": match.source_port,
        "tcp_dst": match.target_port,
    }
    if match.in_port is not None:
        given["in_port"] = match.in_port
    return datapath.ofproto_parser.OFPMatch(**given)


def _instructions(datapath: Any, actions: Actions) -> list[Any]:
    parser, ofproto = datapath.ofproto_parser, datapath.ofproto
    steps = []
    if actions.dscp is not None:
        steps.append(parser.OFPActionSetField(ip_dscp=actions.dscp))
    if actions.eth_dst is not None:
        steps.append(parser.OFPActionSetField(eth_dst=actions.eth_dst))
    if actions.group is not None:
        steps.append(parser.OFPActionGroup(actions.group))
    else:
        steps.append(parser.OFPActionOutput(actions.output, ofproto.OFPCML_NO_BUFFER))
    return [parser.OFPInstructionActions(ofproto.OFPIT_APPLY_ACTIONS, steps)]


def add_rule(datapath: Any, rule: FlowRule) -> Any:
    """Return the flow mod that puts ``rule`` in the table, in place of the one with the same match."""
    return datapath.ofproto_parser.OFPFlowMod(
        datapath,
        cookie=rule.cookie,
        command=datapath.ofproto.OFPFC_ADD,
        priority=rule.priority,
        match=_match(datapath, rule.match),
        instructions=_instructions(datapath, rule.actions),
    )


def delete_rule(datapath: Any, rule: FlowRule) -> Any:
    """Return the flow mod that removes exactly ``rule``."""
    ofproto = datapath.ofproto
    return datapath.ofproto_parser.OFPFlowMod(
        datapath,
        command=ofproto.OFPFC_DELETE_STRICT,
        priority=rule.priority,
        out_port=ofproto.OFPP_ANY,
        out_group=ofproto.OFPG_ANY,
        match=_match(datapath, rule.match),
        instructions=[],
    )


def add_group(datapath: Any, group: GroupRule) -> Any:
    """Return the group mod that makes ``group``: a select group of buckets of equal weight."""
    parser, ofproto = datapath.ofproto_parser, datapath.ofproto
    buckets = [
        parser.OFPBucket(
            weight=1,
            watch_port=ofproto.OFPP_ANY,
            watch_group=ofproto.OFPG_ANY,
            actions=[parser.OFPActionOutput(output, ofproto.OFPCML_NO_BUFFER)],
        )
        for output in group.outputs
    ]
    return parser.OFPGroupMod(datapath, ofproto.OFPGC_ADD, ofproto.OFPGT_SELECT, group.group, buckets)


def delete_group(datapath: Any, group: GroupRule) -> Any:
    """Return the group mod that removes ``group``; a switch that has none of this number does nothing."""
    ofproto = datapath.ofproto
    return datapath.ofproto_parser.OFPGroupMod(datapath, ofproto.OFPGC_DELETE, ofproto.OFPGT_SELECT, group.group, [])


def wipe(datapath: Any) -> list[Any]:
    """Return the messages that empty the tables: all flows, then all groups; then the table miss drops."""
    parser, ofproto = datapath.ofproto_parser, datapath.ofproto
    flows = parser.OFPFlowMod(
        datapath,
        table_id=ofproto.OFPTT_ALL,
        command=ofproto.OFPFC_DELETE,
        out_port=ofproto.OFPP_ANY,
        out_group=ofproto.OFPG_ANY,
        match=parser.OFPMatch(),
        instructions=[],
    )
    groups = parser.OFPGroupMod(datapath, ofproto.OFPGC_DELETE, ofproto.OFPGT_SELECT, ofproto.OFPG_ALL, [])
    miss = parser.OFPFlowMod(datapath, priority=0, match=parser.OFPMatch(), instructions=[])
    return [flows, groups, miss]


def barrier(datapath: Any) -> Any:
    """Return a barrier request: its reply confirms that everything before it has been carried out."""
    return datapath.ofproto_parser.OFPBarrierRequest(datapath)


def stats_request(datapath: Any) -> Any:
    """Return a request for all flow entries and their counters."""
    ofproto = datapath.ofproto
    return datapath.ofproto_parser.OFPFlowStatsRequest(
        datapath, 0, ofproto.OFPTT_ALL, ofproto.OFPP_ANY, ofproto.OFPG_ANY, 0, 0, datapath.ofproto_parser.OFPMatch()
    )


def read_actions(instructions: Iterable[Any]) -> Actions:
    """Return the actions of parsed OpenFlow ``instructions``; unknown ones are ignored."""
    found: dict[str, Any] = {}
    for instruction in instructions:
        for action in getattr(instruction, "actions", ()):
            if hasattr(action, "group_id"):
                found["group"] = action.group_id
            elif hasattr(action, "port"):
                found["output"] = action.port
            elif getattr(action, "key", None) == "ip_dscp":
                found["dscp"] = action.value
            elif getattr(action, "key", None) == "eth_dst":
                found["eth_dst"] = action.value
    return Actions(**found)


def read_match(match: Any) -> Match | None:
    """Return the five-tuple of a parsed OpenFlow ``match``, None if it is no exact TCP five-tuple."""
    given = dict(match.items())
    try:
        return Match(given["ipv4_src"], given["ipv4_dst"], given["tcp_src"], given["tcp_dst"], given.get("in_port"))
    except KeyError:
        return None


def read_stats(switch: str, body: Iterable[Any]) -> list[RuleCount]:
    """Return the flow rules among the flow entries ``body`` that ``switch`` reported, with packet counts."""
    counts = []
    for entry in body:
        match = read_match(entry.match)
        if match is not None:
            rule = FlowRule(switch, entry.priority, match, read_actions(entry.instructions), entry.cookie)
            counts.append(RuleCount(rule, entry.packet_count))
    return counts
