"""A fabric as the page draws it: hosts with their ports, switches by tier, and the links that carry packets. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from testbed.results.record import RunRecord
from topologies.fabric import Fabric, Link

MAX_LINKS: Final = 8000
"""A browser draws no more at once; of a larger fabric the page lists the busiest and draws none."""


def shown_links(fabric: Fabric, records: Sequence[RunRecord]) -> tuple[Link, ...]:
    """The links on the page: those that carry packets, or the busiest ``MAX_LINKS`` of them."""
    links = fabric.network_links
    if len(links) <= MAX_LINKS:
        return links
    sent: dict[str, float] = defaultdict(float)
    for record in records:
        for row in record.links:
            sent[row.link] += row.bytes
    busiest = sorted(links, key=lambda link: -sent[link.name] / link.capacity)[:MAX_LINKS]
    chosen = {link.name for link in busiest}
    return tuple(link for link in links if link.name in chosen)


def fabric_view(fabric: Fabric, links: Sequence[Link] | None = None) -> dict[str, Any]:
    """JSON-ready: ``hosts`` [{name, ports}], ``switches`` [{name, tier}], ``links`` [{name, source, target, ...}].

    Links are directed, their index is their place in ``links``; ``rate`` is in bit/s, ``reverse`` the index of the
    same cable's other direction (-1: not there). ``omitted``: links that are not listed; then nothing can be drawn, and
    hosts and switches are not listed either.
    """
    links = fabric.network_links if links is None else links
    omitted = len(fabric.network_links) - len(links)
    index = {link.name: place for place, link in enumerate(links)}
    hosts = () if omitted else fabric.hosts.values()
    switches = () if omitted else fabric.switches.values()
    return {
        "name": fabric.name,
        "description": fabric.description,
        "omitted": omitted,
        "hosts": [
            {"name": host.name, "ports": [port for nic in host.nics for port in fabric.nics[nic].ports]}
            for host in hosts
        ],
        "switches": [{"name": switch.name, "tier": switch.tier} for switch in switches],
        "links": [
            {
                "name": link.name,
                "source": link.source,
                "target": link.target,
                "kind": link.kind,
                "rate": link.capacity,
                "reverse": index.get(link.reverse, -1),
            }
            for link in links
        ],
    }
