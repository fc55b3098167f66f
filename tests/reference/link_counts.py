"""How many links of each kind a fabric has."""

from __future__ import annotations

from collections.abc import Mapping

from topologies.fabric import Fabric, LinkKind


def count_links(fabric: Fabric) -> Mapping[LinkKind, int]:
    """Number of one-directional links of each kind; a cable counts twice."""
    counts: dict[LinkKind, int] = {}
    for link in fabric.links.values():
        counts[link.kind] = counts.get(link.kind, 0) + 1
    return counts
