"""Forwarding rules as the switches report them: text of Open vSwitch to values. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_HIDDEN_TABLE: Final = "table_id="
_NUMBERED: Final = re.compile(r"(\w+)=([^,]+)")
_MATCH: Final = {"priority", "nw_src", "nw_dst", "tp_src", "tp_dst"}
_OUTPUT: Final = re.compile(r"(output|group):(\d+)")
_DSCP: Final = re.compile(r"set_field:(\d+)->ip_dscp")
_MAC: Final = re.compile(r"set_field:([0-9a-f:]{17})->eth_dst")
_STATISTICS: Final = {"duration", "n_packets", "n_bytes", "cookie"}


class UnsupportedRuleError(Exception):
    """A rule that this datapath cannot carry out; one line that names the switch and the rule."""


@dataclass(frozen=True, slots=True, order=True)
class FiveTuple:
    """The exact match of a rule: IPv4 addresses and TCP ports."""

    source: str
    target: str
    source_port: int
    target_port: int

    @property
    def text(self) -> str:
        """The five-tuple as messages have it."""
        return f"{self.source}:{self.source_port} > {self.target}:{self.target_port}"


@dataclass(frozen=True, slots=True)
class ForwardingRule:
    """What a switch does with the packets of a five-tuple, ``output`` being an OpenFlow port number.

    ``dscp`` and ``eth_dst`` are set before the packet leaves, where they are given. ``group``: it leaves by one of the
    outputs of that group, in place of ``output``.
    """

    output: int | None
    dscp: int | None = None
    eth_dst: str | None = None
    group: int | None = None


SwitchRules = Mapping[FiveTuple, ForwardingRule]
"""The rules of one switch."""


def rules_of(switch: str, text: str) -> dict[FiveTuple, ForwardingRule]:
    """Return the rules in ``text``, the answer of ``bridge/dump-flows``; of two for one match, the higher priority.

    Raises :class:`UnsupportedRuleError` for a rule that is neither an exact TCP five-tuple with one output or group nor
    a table miss that drops.
    """
    found: dict[FiveTuple, tuple[int, ForwardingRule]] = {}
    for line in text.splitlines():
        if not line or line.startswith(_HIDDEN_TABLE):
            continue
        for priority, match, rule in _rule(switch, line):
            if match not in found or found[match][0] < priority:
                found[match] = priority, rule
    return {match: rule for match, (_, rule) in found.items()}


def _rule(switch: str, line: str) -> Iterator[tuple[int, FiveTuple, ForwardingRule]]:
    head, _, actions = line.partition("actions=")
    words = [word.strip() for word in head.split(",") if word.strip()]
    given = {name: value for word in words for name, value in _NUMBERED.findall(word) if name not in _STATISTICS}
    if actions == "drop" and set(given) == {"priority"}:
        return
    steps = [step for step in actions.split(",") if step]
    outputs = [found for found in map(_OUTPUT.fullmatch, steps) if found]
    marks = [found for found in map(_DSCP.fullmatch, steps) if found]
    addresses = [found for found in map(_MAC.fullmatch, steps) if found]
    understood = len(outputs) == 1 and len(outputs) + len(marks) + len(addresses) == len(steps) and len(marks) < 2
    if set(given) != _MATCH or "tcp" not in words or not understood or len(addresses) > 1:
        raise UnsupportedRuleError(f"switch {switch}: nftables cannot carry out the rule '{line.strip()}'")
    match = FiveTuple(given["nw_src"], given["nw_dst"], int(given["tp_src"]), int(given["tp_dst"]))
    dscp = int(marks[0][1]) if marks else None
    kind, number = outputs[0][1], int(outputs[0][2])
    rule = ForwardingRule(
        number if kind == "output" else None,
        dscp,
        addresses[0][1] if addresses else None,
        number if kind == "group" else None,
    )
    yield int(given["priority"]), match, rule
