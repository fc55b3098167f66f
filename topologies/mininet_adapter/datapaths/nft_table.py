"""The kernel's forwarding table as text for nftables, made from the rules of the switches. Pure.

Each switch has an ingress chain on its interfaces and three maps, keyed by the exact TCP five-tuple: ``level`` leads
to the chain that sets a DSCP, ``mac`` gives the destination address, ``out`` leads to the chain that forwards to an
interface, with a counter for each rule. A packet that ``out`` has no element for is counted and dropped.

``ip dscp set`` takes a constant and no map, hence a chain for each DSCP. ``fwd to`` takes a map of interfaces; but
whoever names an interface has nftables list all of them, which takes longer than the change itself.
:mod:`topologies.mininet_adapter.datapaths.nft_groups` has the chains of groups, which spread packets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from topologies.mininet_adapter.datapaths import nft_groups
from topologies.mininet_adapter.datapaths.forwarding_rule import FiveTuple, ForwardingRule, SwitchRules
from topologies.mininet_adapter.datapaths.nft_groups import Group, HeldGroup

TABLE: Final = "netdev testbed"
"""Family and name."""
DSCPS: Final = range(64)
MOST_DEVICES: Final = 255
"""A chain of the netdev family has no more: the kernel refuses the 256th."""
_KEY: Final = "ip saddr . ip daddr . tcp sport . tcp dport"

Tables = Mapping[str, SwitchRules]
"""Switch -> its rules."""


@dataclass(frozen=True, slots=True)
class Element:
    """One element of a map, in the words of nftables: ``key : value``."""

    map: str
    key: str
    value: str

    @property
    def text(self) -> str:
        """The element as it is written between braces."""
        return f"{self.key} : {self.value}"


def layout(interfaces: Mapping[str, Mapping[int, str]]) -> str:
    """Return the commands that make the table, without rules: everything is dropped.

    ``interfaces``: switch -> OpenFlow port number -> interface.
    """
    chains = [f"chain {_dscp_chain(dscp)} {{ ip dscp set {dscp}; }}" for dscp in DSCPS]
    devices = [device for ports in interfaces.values() for device in ports.values()]
    chains += [f'chain {_out_chain(device)} {{ fwd to "{device}"; }}' for device in devices]
    parts = [part for switch, ports in interfaces.items() for part in _switch(switch, list(ports.values()))]
    return "\n".join([f"table {TABLE} {{", *chains, *parts, "}"])


def _switch(switch: str, devices: Sequence[str]) -> Iterator[str]:
    for name, kind in (("level", "verdict"), ("mac", "ether daddr"), ("out", "verdict; counter")):
        yield f"map {name}-{switch} {{ typeof {_KEY} : {kind}; }}"
    yield f"counter dropped-{switch} {{ }}"
    yield (
        f"chain forward-{switch} {{ {_KEY} vmap @level-{switch}; ether daddr set {_KEY} map @mac-{switch}; "
        f"{_KEY} vmap @out-{switch}; counter name dropped-{switch} drop; }}"
    )
    for start in range(0, len(devices), MOST_DEVICES):
        names = ", ".join(f'"{device}"' for device in devices[start : start + MOST_DEVICES])
        hook = f"type filter hook ingress devices = {{ {names} }} priority 0; policy drop;"
        yield f"chain in{start // MOST_DEVICES}-{switch} {{ {hook} goto forward-{switch}; }}"


def _dscp_chain(dscp: int) -> str:
    return f"dscp-{dscp}"


def _out_chain(device: str) -> str:
    return f"out-{device}"


def output_to(device: str) -> str:
    """Return the value in a map ``out`` that forwards to the interface ``device``."""
    return f"goto {_out_chain(device)}"


def elements(
    switch: str, rules: SwitchRules, ports: Mapping[int, str], groups: Mapping[int, Group] = MappingProxyType({})
) -> list[Element]:
    """Return what the maps of ``switch`` hold so that its packets follow ``rules``; ``ports``: number -> interface.

    A rule to a port or one of ``groups`` that the switch does not have has no element in ``out``: its packets are
    dropped.
    """
    return [element for match, rule in rules.items() for element in _elements(switch, match, rule, ports, groups)]


def _elements(
    switch: str, match: FiveTuple, rule: ForwardingRule, ports: Mapping[int, str], groups: Mapping[int, Group]
) -> Iterator[Element]:
    key = f"{match.source} . {match.target} . {match.source_port} . {match.target_port}"
    if rule.dscp is not None:
        yield Element(f"level-{switch}", key, f"jump {_dscp_chain(rule.dscp)}")
    if rule.eth_dst is not None:
        yield Element(f"mac-{switch}", key, rule.eth_dst)
    if rule.group is not None and rule.group in groups:
        yield Element(f"out-{switch}", key, f"goto {groups[rule.group].chain}")
    elif rule.output is not None and rule.output in ports:
        yield Element(f"out-{switch}", key, output_to(ports[rule.output]))


def transaction(old: Iterable[Element], new: Iterable[Element]) -> str:
    """Return the commands that turn ``old`` into ``new``, empty if they are equal; what is in both keeps its count."""
    before, after = dict.fromkeys(old), dict.fromkeys(new)
    gone = [element for element in before if element not in after]
    come = [element for element in after if element not in before]
    lines = [f"delete element {TABLE} {name} {{ {keys} }}" for name, keys in _by_map(gone, with_value=False)]
    return "\n".join([*lines, *(f"add element {TABLE} {name} {{ {text} }}" for name, text in _by_map(come, True))])


def _by_map(found: Iterable[Element], with_value: bool) -> Iterator[tuple[str, str]]:
    maps: dict[str, list[str]] = {}
    for element in found:
        maps.setdefault(element.map, []).append(element.text if with_value else element.key)
    yield from ((name, ", ".join(texts)) for name, texts in maps.items())


@dataclass(frozen=True, slots=True)
class Listing:
    """What the kernel holds: elements, packets counted by each of the ``out`` maps, packets without a rule by switch.

    ``chains`` are the chains in the words of nftables, but those of ``groups``, by name.
    """

    elements: frozenset[Element]
    packets: Mapping[tuple[str, FiveTuple], int]
    dropped: Mapping[str, int]
    chains: str
    groups: Mapping[str, HeldGroup] = field(default_factory=dict)


_BLOCK: Final = re.compile(r"^\t(map|chain|counter) (\S+) \{\n(.*?)^\t\}", re.MULTILINE | re.DOTALL)
_ELEMENT: Final = re.compile(
    r"(?P<key>[\d.]+ \. [\d.]+ \. \d+ \. \d+)(?: counter packets (?P<packets>\d+) bytes \d+)? : (?P<value>[^,}\n]+)"
)
_COUNT: Final = re.compile(r"packets (\d+)")


def read(text: str) -> Listing:
    """Return what ``list table`` said."""
    found: dict[Element, None] = {}
    packets: dict[tuple[str, FiveTuple], int] = {}
    dropped: dict[str, int] = {}
    chains: list[str] = []
    groups: dict[str, HeldGroup] = {}
    for kind, name, body in _BLOCK.findall(text):
        switch = name.partition("-")[2]
        if name.startswith(nft_groups.MARKER):
            before = groups.get(name, HeldGroup((), ()))
            found_here = nft_groups.held_outputs(body) if kind == "map" else before
            groups[name] = found_here._replace(chain=body if kind == "chain" else before.chain)
        elif kind == "chain":
            chains.append(f"chain {name} {{\n{body}}}")
        elif kind == "counter":
            count = _COUNT.search(body)
            dropped[switch] = int(count[1]) if count else 0
        else:
            for element in _ELEMENT.finditer(body):
                key, counted = element["key"], element["packets"]
                found[Element(name, key, element["value"].strip())] = None
                if counted is not None:
                    packets[switch, five_tuple(key)] = int(counted)
    return Listing(frozenset(found), packets, dropped, "\n".join(chains), groups)


def five_tuple(key: str) -> FiveTuple:
    """Return the five-tuple of an element's key."""
    source, target, source_port, target_port = key.split(" . ")
    return FiveTuple(source, target, int(source_port), int(target_port))


def mismatches(wanted: Iterable[Element], chains: str, held: Listing) -> list[str]:
    """Return one line for every element that the kernel lacks, holds otherwise, or should not hold, and for its chains.

    ``chains`` is what the kernel listed when the table was new.
    """
    expected = {(element.map, element.key): element.value for element in wanted}
    there = {(element.map, element.key): element.value for element in held.elements}
    lines = []
    for (name, key), value in expected.items():
        if (name, key) not in there:
            lines.append(f"{_where(name)} lacks {_what(name)} of {_flow(key)}")
        elif there[name, key] != value:
            lines.append(f"{_where(name)} has {there[name, key]} as {_what(name)} of {_flow(key)}, not {value}")
    lines += [
        f"{_where(m)} has {_what(m)} of {_flow(k)} that nobody decided" for m, k in there if (m, k) not in expected
    ]
    if chains != held.chains:
        lines.append("the chains of the kernel's table are not as they were made")
    return sorted(lines)


def _where(name: str) -> str:
    return f"the kernel's table of switch {name.partition('-')[2]}"


def _what(name: str) -> str:
    return {"level": "the mark", "mac": "the MAC address", "out": "the output"}[name.partition("-")[0]]


def _flow(key: str) -> str:
    return five_tuple(key).text
