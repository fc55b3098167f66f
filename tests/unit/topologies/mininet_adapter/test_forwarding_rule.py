"""Rules as Open vSwitch reports them."""

from __future__ import annotations

import pytest

from topologies.mininet_adapter.datapaths.forwarding_rule import (
    FiveTuple,
    ForwardingRule,
    UnsupportedRuleError,
    rules_of,
)

STATISTICS = "duration=3s, n_packets=7, n_bytes=420, "
MATCH = "priority=100,tcp,nw_src=10.0.0.1,nw_dst=10.0.2.1,tp_src=61000,tp_dst=5000,"
MISS = f"{STATISTICS}priority=0,actions=drop"
HIDDEN = "table_id=254, duration=0s, n_packets=0, n_bytes=0, priority=2,recirc_id=0,actions=drop"
FLOW = FiveTuple("10.0.0.1", "10.0.2.1", 61000, 5000)


def test_a_rule_is_its_five_tuple_and_what_it_does() -> None:
    actions = "actions=set_field:32->ip_dscp,set_field:02:00:00:00:02:01->eth_dst,output:2"
    said = "\n".join([f"{STATISTICS}{MATCH}{actions}", MISS, HIDDEN])
    assert rules_of("tor0", said) == {FLOW: ForwardingRule(2, 32, "02:00:00:00:02:01")}


def test_a_switch_in_the_middle_only_sends_on() -> None:
    assert rules_of("agg0", f"{STATISTICS}{MATCH}actions=output:3") == {FLOW: ForwardingRule(3)}


def test_the_rule_of_higher_priority_counts() -> None:
    above = MATCH.replace("priority=100", "priority=200")
    both = [f"{STATISTICS}{MATCH}actions=output:3", f"{STATISTICS}{above}actions=output:4"]
    assert rules_of("agg0", "\n".join(both)) == rules_of("agg0", "\n".join(reversed(both))) == {FLOW: ForwardingRule(4)}


def test_a_rule_may_lead_to_a_group() -> None:
    said = f"{MATCH}actions=set_field:32->ip_dscp,group:7"
    assert rules_of("agg0", said) == {FLOW: ForwardingRule(None, 32, group=7)}


def test_a_table_miss_that_drops_is_no_rule() -> None:
    assert rules_of("tor0", f"{MISS}\n{HIDDEN}\n") == {}


@pytest.mark.parametrize(
    "rule",
    [
        f"{MATCH}actions=group:7,output:3",
        f"{MATCH}in_port=3,actions=output:3",
        f"{MATCH}actions=output:3,output:4",
        f"{MATCH}actions=CONTROLLER:65535",
        f"{MATCH}actions=drop",
        "priority=100,ip,nw_src=10.0.0.1,actions=output:3",
        "priority=100,udp,nw_src=10.0.0.1,nw_dst=10.0.2.1,tp_src=61000,tp_dst=5000,actions=output:3",
        "priority=0,actions=NORMAL",
    ],
)
def test_what_nftables_cannot_carry_out_is_refused_by_the_switch_and_the_rule(rule: str) -> None:
    with pytest.raises(UnsupportedRuleError) as refused:
        rules_of("tor0", f"{STATISTICS}{rule}")
    assert str(refused.value) == f"switch tor0: nftables cannot carry out the rule '{STATISTICS}{rule}'"
