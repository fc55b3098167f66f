"""The interface of a network of switches: it separates the controller's logic from OpenFlow.

Implemented by the Ryu application for connected switches, and by
:class:`controller.dataplane.fake_network.MemoryNetwork` in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from controller.dataplane.rules import FlowRule, GroupRule, RuleCount
from topologies.fabric import Fabric


class NetworkError(Exception):
    """The switches did not carry out a request; one line that names them."""


@dataclass(frozen=True, slots=True)
class RuleBatch:
    """Changes that may happen in any order across switches; on one switch groups come first, deletions last."""

    groups: tuple[GroupRule, ...] = ()
    add: tuple[FlowRule, ...] = ()
    delete: tuple[FlowRule, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.switches

    @property
    def switches(self) -> frozenset[str]:
        """The switches that have something to do."""
        groups = {group.switch for group in self.groups}
        return frozenset(groups | {rule.switch for rule in (*self.add, *self.delete)})

    def on(self, switches: Collection[str]) -> RuleBatch:
        """Return the part of it that concerns ``switches``."""
        return RuleBatch(
            tuple(group for group in self.groups if group.switch in switches),
            tuple(rule for rule in self.add if rule.switch in switches),
            tuple(rule for rule in self.delete if rule.switch in switches),
        )


class Network(Protocol):
    """A network of OpenFlow switches."""

    def reset(self, fabric: Fabric) -> None:
        """Take ``fabric`` as the network's plan and empty the tables of the switches that are there."""
        ...

    def expect(self, switches: Collection[str]) -> None:
        """Take only ``switches`` of the fabric as there: the others are not built, and nothing is asked of them."""
        ...

    def connected(self) -> Mapping[str, bool]:
        """Switch name -> whether it is connected, for every switch that is expected."""
        ...

    def apply(self, batch: RuleBatch) -> None:
        """Send ``batch`` to all its switches at once and return when all have confirmed it.

        Raises :class:`NetworkError` where a switch is away, refuses or does not answer; some of ``batch`` may be in
        force then. A switch that does not answer counts as away until it connects again.
        """
        ...

    def read(self) -> Sequence[RuleCount]:
        """Return the flow rules that the connected switches hold."""
        ...
