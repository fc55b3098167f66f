"""Which jobs have to do with each other: those that share a link, and those that share one with these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def groups(links: Mapping[str, int], around: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the groups that hold a job of ``around``; each in the order of ``links`` (job -> its links as bits)."""
    left = dict.fromkeys(around)
    found: list[tuple[str, ...]] = []
    while left:
        first = next(iter(left))
        members = _reached(links, first)
        for name in members:
            left.pop(name, None)
        found.append(tuple(name for name in links if name in members))
    return found


def _reached(links: Mapping[str, int], first: str) -> set[str]:
    members, edge = {first}, links[first]
    outside = {name: used for name, used in links.items() if name != first and used}
    while True:
        near = [name for name, used in outside.items() if used & edge]
        if not near:
            return members
        for name in near:
            members.add(name)
            edge |= outside.pop(name)
