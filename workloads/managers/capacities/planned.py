"""Capacities that need no model: all hosts, or hosts that join and leave at given times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

from topologies.fabric import Fabric
from workloads.managers.interfaces import Capacity, CapacityChanged
from workloads.managers.options import listed, shown


class Steady(Capacity):
    """All hosts, all the time."""

    name: ClassVar[str] = "steady"
    summary: ClassVar[str] = "all hosts, all the time"
    lends: bool = False

    def changes(self, fabric: Fabric) -> Iterator[CapacityChanged]:
        """None."""
        return iter(())


class Planned(Capacity):
    """Hosts join and leave at given times."""

    name: ClassVar[str] = "planned"
    summary: ClassVar[str] = "hosts come and go at given times"

    def __init__(self, changes: Sequence[CapacityChanged] = ()) -> None:
        given = listed(self.name, "changes", changes, "changes of capacity, which only a program can give")
        known = [change for change in given if isinstance(change, CapacityChanged)]
        if len(known) < len(given):
            raise ValueError(
                f"option 'changes' of planned must be a list of changes of capacity, not '{shown(changes)}'"
            )
        self._changes = tuple(sorted(known, key=lambda change: change.time_s))
        self.lends = any(change.lendable is not None for change in self._changes)

    def changes(self, fabric: Fabric) -> Iterator[CapacityChanged]:
        """Those given, by time."""
        return iter(self._changes)
