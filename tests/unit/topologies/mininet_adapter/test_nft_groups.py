"""Groups of switches in the kernel's forwarding table: what is read from the switch, made, and read back."""

from __future__ import annotations

import pytest

from topologies.mininet_adapter.datapaths.forwarding_rule import FiveTuple, ForwardingRule, UnsupportedRuleError
from topologies.mininet_adapter.datapaths.nft_groups import Group, HeldGroup, groups_of, made, mismatches, removed
from topologies.mininet_adapter.datapaths.nft_table import Element, elements, read
from topologies.network.load_balancing import Spread

DUMP = """OFPST_GROUP_DESC reply (OF1.3) (xid=0x2):
 group_id=7,type=select,bucket=weight:1,actions=output:3,bucket=weight:1,actions=output:4
 group_id=9,type=select,bucket=bucket_id:0,weight:1,actions=output:"5",bucket=bucket_id:1,weight:1,actions=output:6
"""
GROUP = Group("tor0", 7, (3, 4))
VERDICTS = ("goto out-tor0-eth3", "goto out-tor0-eth4")
CHAIN = "\t\tnumgen inc mod 2 vmap @group-tor0-7\n"
LISTED = """table netdev testbed {
	map group-tor0-7 {
		typeof numgen inc mod 65536 : verdict
		counter
		elements = { 1 counter packets 12 bytes 480 : goto out-tor0-eth4,
			0 counter packets 11 bytes 440 : goto out-tor0-eth3 }
	}

	chain forward-tor0 {
		counter drop
	}

	chain group-tor0-7 {
		numgen inc mod 2 vmap @group-tor0-7
	}
}
"""


def test_groups_are_read_as_the_switch_reports_them() -> None:
    assert groups_of("tor0", DUMP) == {7: GROUP, 9: Group("tor0", 9, (5, 6))}


@pytest.mark.parametrize(
    "group",
    [
        "group_id=7,type=all,bucket=weight:1,actions=output:3",
        "group_id=7,type=select,bucket=weight:1,actions=output:3,bucket=weight:2,actions=output:4",
        "group_id=7,type=select,bucket=weight:1,actions=output:3,output:4",
        "group_id=7,type=select",
        "group_id=7,type=select,bucket=weight:1,actions=drop",
    ],
)
def test_a_group_that_is_no_choice_among_equals_is_refused(group: str) -> None:
    with pytest.raises(UnsupportedRuleError, match="switch tor0: nftables cannot carry out the group 'group_id=7"):
        groups_of("tor0", f"{group}," if group.endswith("select") else group)


def test_a_rule_with_a_group_leads_to_its_chain_and_one_that_is_not_there_drops() -> None:
    flow = FiveTuple("10.0.0.1", "10.0.2.1", 61000, 5000)
    key = "10.0.0.1 . 10.0.2.1 . 61000 . 5000"
    rules = {flow: ForwardingRule(None, group=7)}
    assert elements("tor0", rules, {}, {7: GROUP}) == [Element("out-tor0", key, "goto group-tor0-7")]
    assert elements("tor0", rules, {}, {}) == []


@pytest.mark.parametrize(("kind", "numbers"), [("spray", "random"), ("spray-in-turn", "inc")])
def test_a_group_has_a_chain_that_draws_a_number_and_a_map_that_counts(kind: str, numbers: str) -> None:
    commands = made(GROUP, VERDICTS, Spread(kind), "netdev testbed")  # type: ignore[arg-type]
    assert commands == [
        "add map netdev testbed group-tor0-7 { typeof numgen inc mod 65536 : verdict; counter; "
        "elements = { 0 : goto out-tor0-eth3, 1 : goto out-tor0-eth4 }; }",
        f"add chain netdev testbed group-tor0-7 {{ numgen {numbers} mod 2 vmap @group-tor0-7; }}",
    ]
    assert removed(GROUP, Spread(kind), "netdev testbed") == [  # type: ignore[arg-type]
        "delete chain netdev testbed group-tor0-7",
        "delete map netdev testbed group-tor0-7",
    ]


def test_flowlets_are_kept_for_as_long_as_packets_come() -> None:
    text = "\n".join(made(GROUP, VERDICTS, Spread("flowlet", 30), "netdev testbed"))
    assert "flags dynamic,timeout; size 65536; timeout 30ms" in text
    assert "timeout 30ms : numgen random mod 2 }" in text
    assert removed(GROUP, Spread("flowlet", 30), "netdev testbed")[-1] == "delete map netdev testbed flowlets-tor0-7"


def test_what_the_kernel_lists_of_a_group_is_read_back_in_the_order_of_its_numbers() -> None:
    found = read(LISTED)
    assert found.groups == {"group-tor0-7": HeldGroup(VERDICTS, (11, 12), CHAIN)}
    assert "group" not in found.chains and found.elements == frozenset()


@pytest.mark.parametrize(
    ("held", "line"),
    [
        ({}, "the kernel's table of switch tor0 lacks group 7"),
        ({GROUP.chain: HeldGroup(VERDICTS[:1], (1,), CHAIN)}, "has another group 7 than decided"),
        ({GROUP.chain: HeldGroup(VERDICTS, (1, 1), "\t\tdrop\n\t")}, "has another group 7 than decided"),
        (
            {GROUP.chain: HeldGroup(VERDICTS, (1, 1), CHAIN), "group-x-1": HeldGroup((), ())},
            "has group-x-1, which nobody decided",
        ),
    ],
)
def test_a_group_that_is_not_as_made_is_found(held: dict[str, HeldGroup], line: str) -> None:
    (found,) = mismatches({GROUP: HeldGroup(VERDICTS, (), CHAIN)}, held)
    assert line in found


def test_packets_make_no_difference() -> None:
    assert mismatches({GROUP: HeldGroup(VERDICTS, (), CHAIN)}, {GROUP.chain: HeldGroup(VERDICTS, (5, 9), CHAIN)}) == []
