"""Which ports of a fabric reach each other: what is missing where its parts have no cable between them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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


def flow_apart(ends: Iterable[tuple[str, str]], fabric: Fabric) -> tuple[str, str] | None:
    """Return the first of ``ends`` (ports that send and receive) that no way joins; None if there is none."""
    part = switch_parts(fabric)
    for source, target in ends:
        if part[fabric.ports[source].switch] != part[fabric.ports[target].switch]:
            return source, target
    return None
