"""Select groups as text for nftables: packets of a flow spread over several interfaces. Pure.

Each group of a switch has a chain and a map from a number to the chain of an output, whose elements count packets.
The number is the next one in turn, a random one, or that of the flowlet: the kernel keeps the last for each five-tuple
in a map whose elements vanish when no packet has come for a while.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from topologies.mininet_adapter.datapaths.forwarding_rule import UnsupportedRuleError
from topologies.network.load_balancing import Spread

MARKER: Final = "group-"
_FLOWLETS: Final = "flowlets-"
_MOST_FLOWLETS: Final = 65536
_KEY: Final = "ip saddr . ip daddr . tcp sport . tcp dport"


class Group(NamedTuple):
    """A group of a switch: its number, and its outputs (OpenFlow port numbers)."""

    switch: str
    number: int
    outputs: tuple[int, ...]

    @property
    def chain(self) -> str:
        """Name of its chain and of its map."""
        return f"{MARKER}{self.switch}-{self.number}"

    @property
    def flowlets(self) -> str:
        """Name of the map that keeps the output of each flowlet."""
        return f"{_FLOWLETS}{self.switch}-{self.number}"


_GROUP: Final = re.compile(r"group_id=(\d+),type=(\w+),(.*)")
_BUCKET: Final = re.compile(r"(?:bucket_id:\d+,)?(?:weight:(\d+),)?actions=output:\"?([\w-]+)\"?,?")


def groups_of(switch: str, text: str) -> dict[int, Group]:
    """Return the groups in ``text``, what ``dump-groups`` said: number -> group.

    Raises :class:`UnsupportedRuleError` for one that does not choose among single outputs of equal weight.
    """
    found = {}
    for line in text.splitlines():
        match = _GROUP.search(line)
        if match is None:
            continue
        number, kind, rest = match.groups()
        buckets = [_BUCKET.fullmatch(part) for part in rest.split("bucket=")[1:]]
        weights = {bucket[1] for bucket in buckets if bucket}
        plain = all(bucket is not None and bucket[2].isdigit() for bucket in buckets)
        if kind != "select" or not buckets or not plain or len(weights) > 1:
            raise UnsupportedRuleError(f"switch {switch}: nftables cannot carry out the group '{line.strip()}'")
        found[int(number)] = Group(switch, int(number), tuple(int(bucket[2]) for bucket in buckets if bucket))
    return found


def made(group: Group, verdicts: Sequence[str], spread: Spread, table: str) -> list[str]:
    """Return the commands that make the chain and the maps of ``group``; ``verdicts`` lead to its outputs."""
    numbers = f"numgen {'inc' if spread.kind == 'spray-in-turn' else 'random'} mod {len(verdicts)}"
    elements = ", ".join(f"{number} : {verdict}" for number, verdict in enumerate(verdicts))
    key = "meta mark" if spread.kind == "flowlet" else "numgen inc mod 65536"
    commands = [f"add map {table} {group.chain} {{ typeof {key} : verdict; counter; elements = {{ {elements} }}; }}"]
    if spread.kind == "flowlet":
        gap = f"timeout {spread.gap_ms}ms"
        commands.append(
            f"add map {table} {group.flowlets} {{ typeof {_KEY} : meta mark; flags dynamic,timeout; "
            f"size {_MOST_FLOWLETS}; {gap}; }}"
        )
        # An element that is there keeps its number, and its time begins again.
        rules: tuple[str, ...] = (
            f"update @{group.flowlets} {{ {_KEY} {gap} : {numbers} }}",
            f"meta mark set {_KEY} map @{group.flowlets}",
            f"meta mark vmap @{group.chain}",
        )
    else:
        rules = (f"{numbers} vmap @{group.chain}",)
    commands.append(f"add chain {table} {group.chain} {{ {'; '.join(rules)}; }}")
    return commands


def removed(group: Group, spread: Spread, table: str) -> list[str]:
    """Return the commands that take away what :func:`made` has made, once nothing leads there."""
    maps = [group.chain, *([group.flowlets] if spread.kind == "flowlet" else ())]
    return [f"delete chain {table} {group.chain}", *(f"delete map {table} {name}" for name in maps)]


_OUTPUT: Final = re.compile(r"(0x[0-9a-f]+|\d+) counter packets (\d+) bytes \d+ : ([^,}\n]+)")


class HeldGroup(NamedTuple):
    """A group as the kernel lists it: where each number leads, packets counted there, and the chain's text."""

    verdicts: tuple[str, ...]
    packets: tuple[int, ...]
    chain: str = ""


def held_outputs(body: str) -> HeldGroup:
    """Return what the map of a group holds."""
    found = sorted((int(number, 0), verdict.strip(), int(count)) for number, count, verdict in _OUTPUT.findall(body))
    return HeldGroup(tuple(verdict for _, verdict, _ in found), tuple(count for _, _, count in found))


def mismatches(expected: Mapping[Group, HeldGroup], held: Mapping[str, HeldGroup]) -> list[str]:
    """Return one line for every group that the kernel lacks or holds otherwise; packets do not count."""
    lines = []
    for group, wanted in expected.items():
        there = held.get(group.chain)
        if there is None or not there.verdicts:
            lines.append(f"the kernel's table of switch {group.switch} lacks group {group.number}")
        elif there.verdicts != wanted.verdicts or there.chain != wanted.chain:
            lines.append(f"the kernel's table of switch {group.switch} has another group {group.number} than decided")
    names = {group.chain for group in expected}
    lines += [f"the kernel's table has {name}, which nobody decided" for name in held if name not in names]
    return lines
