"""Which ports of a fabric reach each other: what is missing where its parts have no cable between them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product

from topologies.fabric import Fabric

EVERY_HOST = "a path between every two hosts"


def switch_parts(fabric: Fabric) -> Mapping[str, str]:
    """Switch -> one of those that it reaches, the same for all of them; cables carry both ways."""
    part: dict[str, str] = {}
    for first in fabric.switches:
        waiting = [first] if first not in part else []
        while waiting:
            switch = waiting.pop()
            if switch not in part:
                part[switch] = first
                waiting += [link.target for link in fabric.links_from.get(switch, ()) if link.target in fabric.switches]
    return part


def ports_apart(fabric: Fabric) -> tuple[str, str] | None:
    """Return two ports that a job on all GPUs would join and that no way joins; None if there are none.

    Those are the ports of one number, of all NICs of one number where NICs of a host are on ToRs of their own: rails
    and planes need not reach each other.
    """
    part = switch_parts(fabric)
    first: dict[tuple[int, int], str] = {}
    for nic in fabric.nics.values():
        for number, port in enumerate(nic.ports):
            other = first.setdefault((nic.index if fabric.has_rail_switches else 0, number), port)
            if part[fabric.ports[port].switch] != part[fabric.ports[other].switch]:
                return other, port
    return None


class Reach:
    """Which ports of ``fabric`` still reach each other over ``left``, what failures have left of it."""

    def __init__(self, fabric: Fabric, left: Fabric) -> None:
        self._fabric, self._left = fabric, left
        self._part = switch_parts(left)

    def ends(self, source: str, target: str) -> tuple[str, str] | None:
        """Return the ports between which packets from ``source`` to ``target`` can go; None if there are none.

        Those two if they can; otherwise the connection goes on over another port of one NIC, or of both.
        """
        pairs = product(self._alternatives(source), self._alternatives(target))
        return next((pair for pair in pairs if self._part_of(pair[0]) == self._part_of(pair[1])), None)

    def _alternatives(self, port: str) -> list[str]:
        """The ports of a NIC that have a cable, first the one that is meant."""
        nic = self._fabric.ports[port].nic
        return sorted(self._left.nics[nic].ports, key=lambda other: other != port)

    def _part_of(self, port: str) -> str:
        return self._part[self._left.ports[port].switch]


def flow_apart(ends: Iterable[tuple[str, str]], fabric: Fabric) -> tuple[str, str] | None:
    """Return the first of ``ends`` (ports that send and receive) that no way joins; None if there is none."""
    part = switch_parts(fabric)
    for source, target in ends:
        if part[fabric.ports[source].switch] != part[fabric.ports[target].switch]:
            return source, target
    return None
