"""The kernel's forwarding table: its text, what is read back from it, and how the two are compared."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from topologies.mininet_adapter.datapaths.forwarding_rule import FiveTuple, ForwardingRule
from topologies.mininet_adapter.datapaths.nft_table import (
    MOST_DEVICES,
    Element,
    elements,
    layout,
    mismatches,
    read,
    transaction,
)

PORTS = {1: "tor0-eth1", 2: "tor0-eth2"}
FLOW = FiveTuple("10.0.0.1", "10.0.2.1", 61000, 5000)
KEY = "10.0.0.1 . 10.0.2.1 . 61000 . 5000"
RULE = ForwardingRule(2, 32, "02:00:00:00:02:01")
CHAINS = "chain forward-tor0 {\n\t\tcounter drop\n}"

five_tuples = st.builds(
    FiveTuple,
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=4).map(str),
    st.integers(1, 65535),
    st.integers(1, 65535),
)
macs = st.integers(0, 255).map(lambda number: f"02:00:00:00:00:{number:02x}")
rules = st.builds(
    ForwardingRule, st.sampled_from([1, 2]), st.none() | st.sampled_from(range(0, 64, 8)), st.none() | macs
)
tables = st.dictionaries(five_tuples, rules, max_size=8)


def listed(held: Iterable[Element], packets: int = 0) -> str:
    """What nftables lists for a table that holds these elements."""
    blocks: dict[str, list[str]] = {}
    for element in held:
        counter = f" counter packets {packets} bytes 9" if element.map.startswith("out-") else ""
        blocks.setdefault(element.map, []).append(f"{element.key}{counter} : {element.value}")
    joined = {name: ",\n\t\t\t     ".join(texts) for name, texts in blocks.items()}
    maps = [
        f"\tmap {name} {{\n\t\ttypeof ip saddr : verdict\n\t\telements = {{ {texts} }}\n\t}}\n"
        for name, texts in joined.items()
    ]
    counter = "\tcounter dropped-tor0 {\n\t\tpackets 3 bytes 180\n\t}\n"
    chain = "\tchain forward-tor0 {\n\t\tcounter drop\n\t}\n"
    return "table netdev testbed {\n" + counter + "\n" + "\n".join(maps) + "\n" + chain + "}\n"


def test_a_rule_sets_mark_and_address_and_names_the_interface() -> None:
    assert elements("tor0", {FLOW: RULE}, PORTS) == [
        Element("level-tor0", KEY, "jump dscp-32"),
        Element("mac-tor0", KEY, "02:00:00:00:02:01"),
        Element("out-tor0", KEY, "goto out-tor0-eth2"),
    ]


def test_a_rule_to_a_port_that_is_not_there_forwards_nothing() -> None:
    assert elements("tor0", {FLOW: ForwardingRule(9)}, PORTS) == []


def test_every_interface_of_a_switch_is_hooked_in_chains_of_as_many_as_the_kernel_allows() -> None:
    many = {number: f"tor0-eth{number}" for number in range(1, MOST_DEVICES + 2)}
    text = layout({"tor0": many})
    assert all(f'"{name}"' in text for name in many.values())
    assert text.count("type filter hook ingress") == 2
    assert text.count("policy drop") == 2


@given(tables, tables)
def test_a_transaction_touches_only_what_differs(
    before: dict[FiveTuple, ForwardingRule], after: dict[FiveTuple, ForwardingRule]
) -> None:
    old, new = elements("tor0", before, PORTS), elements("tor0", after, PORTS)
    text = transaction(old, new)
    kept = set(old) & set(new)
    assert all(f"{element.key} : {element.value}" not in text for element in kept)
    assert (text == "") == (set(old) == set(new))
    assert all(element.text in text for element in set(new) - kept)


@given(tables)
def test_what_was_loaded_is_read_back_without_a_difference(table: dict[FiveTuple, ForwardingRule]) -> None:
    wanted = elements("tor0", table, PORTS)
    held = read(listed(wanted, packets=5))
    assert held.elements == frozenset(wanted)
    assert mismatches(wanted, CHAINS, held) == []
    assert held.packets == {("tor0", match): 5 for match in table}
    assert held.dropped == {"tor0": 3}


def test_every_difference_is_named() -> None:
    wanted = elements("tor0", {FLOW: RULE}, PORTS)
    flow = "10.0.0.1:61000 > 10.0.2.1:5000"
    assert mismatches(wanted, CHAINS, read(listed(wanted[:2]))) == [
        f"the kernel's table of switch tor0 lacks the output of {flow}"
    ]
    wrong = [Element("level-tor0", KEY, "jump dscp-0"), wanted[1], Element("out-tor0", KEY, "goto out-tor0-eth1")]
    assert mismatches(wanted, CHAINS, read(listed(wrong))) == [
        f"the kernel's table of switch tor0 has goto out-tor0-eth1 as the output of {flow}, not goto out-tor0-eth2",
        f"the kernel's table of switch tor0 has jump dscp-0 as the mark of {flow}, not jump dscp-32",
    ]
    assert mismatches([], CHAINS, read(listed(wanted[2:]))) == [
        f"the kernel's table of switch tor0 has the output of {flow} that nobody decided"
    ]
    assert mismatches(wanted, "chain forward-tor0 {\n\t\taccept\n}", read(listed(wanted))) == [
        "the chains of the kernel's table are not as they were made"
    ]
