"""What every datapath does for a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from topologies.network.load_balancing import Spread, SpreadCount

Counters = Mapping[str, Mapping[str, int]]
"""Switch -> five-tuple, such as ``10.0.0.1:61000 > 10.0.2.1:5000`` -> packets forwarded by its rule."""


@dataclass(frozen=True, slots=True)
class Forwarding:
    """What was read back from where packets are really forwarded.

    ``mismatches``: one line for each difference from the rules that the switches hold. ``dropped``: packets that came
    to a switch that had no rule for them. ``changes``: how often the switches have reported other rules than before.
    ``spread``: packets that each group of a switch has sent by each of its outputs.
    """

    counters: Counters
    mismatches: tuple[str, ...] = ()
    dropped: int = 0
    changes: int = 0
    spread: tuple[SpreadCount, ...] = ()


class Datapath(Protocol):
    """Forwards the packets of a fabric by the rules that its switches hold."""

    @property
    def bridge_type(self) -> str:
        """A type of datapath, in the words of Open vSwitch."""
        ...

    @property
    def has_ports(self) -> bool:
        """Whether interfaces are ports of the bridges; rules name ports by number in any case."""
        ...

    @property
    def daemon_options(self) -> tuple[str, ...]:
        """Arguments of ``ovs-vswitchd``."""
        ...

    def start(self) -> None:
        """Begin to forward, once the bridges are there; nothing passes before rules are carried out."""
        ...

    def spread_by(self, spread: Spread | None) -> None:
        """Let groups spread packets so, before there are any; ``CommandError`` where that cannot be."""
        ...

    def carry_out(self) -> None:
        """Return when packets follow the rules that the switches have confirmed."""
        ...

    def make_room(self) -> None:
        """Make room for what waits in the queues, once a first packet has passed."""
        ...

    def read_back(self) -> Forwarding | None:
        """Return what is really forwarded by; None where the switches' own OpenFlow counters say that."""
        ...
