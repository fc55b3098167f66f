"""The part of a fabric that packets can use: what an emulation has to build. Pure.

Names, addresses, port numbers and decisions are those of the whole fabric; the rest of it is only not there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Literal

from topologies.fabric import NETWORK_KINDS, Fabric, Link

Build = Literal["used", "all"]
"""What of a fabric an emulation builds: ``used`` by some connection of its jobs, or ``all``."""


@dataclass(frozen=True, slots=True)
class BuiltPart:
    """Names of hosts, switches and network links (both directions of a cable), in the order of their fabric."""

    hosts: tuple[str, ...]
    switches: tuple[str, ...]
    links: frozenset[str]

    def has(self, link: Link) -> bool:
        """Whether ``link``, or for one inside a host its host, is built."""
        return link.kind not in NETWORK_KINDS or link.name in self.links

    def left_out_of(self, fabric: Fabric) -> str:
        """Say what of ``fabric`` is not built; empty if nothing is left out."""
        hosts, switches = len(fabric.hosts) - len(self.hosts), len(fabric.switches) - len(self.switches)
        cables = (len(fabric.network_links) - len(self.links)) // 2
        if not hosts and not switches and not cables:
            return ""
        counted = [_counted(hosts, "host"), _counted(switches, "switch"), _counted(cables, "cable")]
        return f"not built, since no job can use them: {', '.join(part for part in counted if part)}"


def whole(fabric: Fabric) -> BuiltPart:
    """Return all of ``fabric``."""
    return BuiltPart(tuple(fabric.hosts), tuple(fabric.switches), frozenset(link.name for link in fabric.network_links))


def used_part(fabric: Fabric, hosts: Collection[str], joined: Iterable[tuple[str, str]]) -> BuiltPart:
    """Return what is on a shortest path between two ports that are ``joined``, and ``hosts`` with all their ports."""
    ports = [port for port, record in fabric.ports.items() if record.host in set(hosts)]
    links = {fabric.uplink(port).name for port in ports}
    ends = {(fabric.ports[source].switch, fabric.ports[target].switch): (source, target) for source, target in joined}
    for source, target in ends.values():
        for path in fabric.candidate_paths(source, target):
            links.update(path)
    both = frozenset(links | {fabric.links[name].reverse for name in links})
    nodes = {fabric.links[name].target for name in both}
    return BuiltPart(
        tuple(host for host in fabric.hosts if host in set(hosts)),
        tuple(switch for switch in fabric.switches if switch in nodes),
        both,
    )


def _counted(count: int, noun: str) -> str:
    return "" if not count else f"{count:,} {noun}{'' if count == 1 else 'es' if noun == 'switch' else 's'}"
