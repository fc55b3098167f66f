"""Shortest paths between switches, found from both ends at once.

The same paths in the same order as :meth:`topologies.fabric.Fabric.candidate_paths`, without the
links to the hosts. Ports under the same pair of switches share them, and a search from both ends
meets in the middle, so a fabric of hundreds of ToRs costs no more per pair than a small one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

Path = tuple[str, ...]
"""Links from end to end, by name."""


class Cable(Protocol):
    """The part of a link used here: its name, and the node it leads to."""

    @property
    def name(self) -> str:
        """The link."""
        ...

    @property
    def target(self) -> str:
        """Where it ends."""
        ...


class SwitchPaths:
    """The paths between ``switches`` over ``links_from`` (node -> its outgoing links), of the fabric called ``name``.

    Computed paths are cached.
    """

    def __init__(self, name: str, switches: Iterable[str], links_from: Mapping[str, Iterable[Cable]]) -> None:
        self._name = name
        self._found: dict[tuple[str, str], tuple[Path, ...]] = {}
        self._next: dict[str, list[str]] = {switch: [] for switch in switches}
        self._cables: dict[tuple[str, str], list[tuple[int, str]]] = {}
        for switch in self._next:
            for position, link in enumerate(links_from.get(switch, ())):
                if link.target not in self._next:
                    continue
                cables = self._cables.setdefault((switch, link.target), [])
                if not cables:
                    self._next[switch].append(link.target)
                cables.append((position, link.name))

    def between(self, source: str, target: str) -> tuple[Path, ...]:
        """Return all shortest paths from switch ``source`` to switch ``target``: links, one empty path if they are one.

        Raises ``KeyError`` for an unknown switch and ``ValueError`` if no path joins the two.
        """
        key = (source, target)
        if key not in self._found:
            self._found[key] = self._search(source, target)
        return self._found[key]

    def _search(self, source: str, target: str) -> tuple[Path, ...]:
        layers = self._layers(source, target)
        reached: dict[str, list[Path]] = {source: [()]}
        for allowed in layers[1:]:
            following: dict[str, list[Path]] = {}
            for node, prefixes in reached.items():
                for _, link, far in sorted(self._steps(node, allowed)):
                    following.setdefault(far, []).extend((*prefix, link) for prefix in prefixes)
            reached = following
        return tuple(reached[target])

    def _steps(self, node: str, allowed: set[str]) -> list[tuple[int, str, str]]:
        """The links of ``node`` to ``allowed`` nodes, each with its position among all links of ``node``."""
        return [(position, link, far) for far in allowed for position, link in self._cables.get((node, far), ())]

    def _layers(self, source: str, target: str) -> list[set[str]]:
        """Per distance from ``source``, the switches on shortest paths to ``target``."""
        ahead, back = [{source}], [{target}]
        seen_ahead, seen_back = {source}, {target}
        while not ahead[-1] & back[-1]:
            grown, seen = (ahead, seen_ahead) if len(ahead[-1]) <= len(back[-1]) else (back, seen_back)
            frontier = {far for node in grown[-1] for far in self._next[node]} - seen
            if not frontier:
                raise ValueError(f"no path from switch '{source}' to switch '{target}' in fabric {self._name}")
            seen |= frontier
            grown.append(frontier)
        layers = [*ahead[:-1], ahead[-1] & back[-1], *reversed(back[:-1])]
        # A cable is two links, so neighbours in one direction are neighbours in the other.
        for index in range(len(ahead) - 2, -1, -1):
            layers[index] = {node for node in layers[index] if not layers[index + 1].isdisjoint(self._next[node])}
        return layers
