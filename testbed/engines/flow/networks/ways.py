"""The ways that packets of a flow may take where they are spread over several. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from topologies.fabric import NETWORK_KINDS, Fabric

Way = tuple[str, ...]
"""Links in order, those inside hosts included."""


def all_ways(way: Sequence[str], whole: Fabric, left: Fabric) -> tuple[Way, ...]:
    """Return all ways between the same ports as ``way``, a way on ``whole``, over what failures have ``left`` of it.

    ``way`` alone where they have left none.
    """
    inside = [place for place, link in enumerate(way) if whole.links[link].kind in NETWORK_KINDS]
    first, last = inside[0], inside[-1]
    try:
        paths = left.candidate_paths(whole.links[way[first]].source, whole.links[way[last]].target)
    except (KeyError, ValueError):
        return (tuple(way),)
    return tuple((*way[:first], *path, *way[last + 1 :]) for path in paths)
