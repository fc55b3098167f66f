"""Two binary trees over the same hosts, as NCCL has them: an allreduce sends half of its bytes through each.

Sanders, Speck and Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan" (2009). The numbering
is that of NCCL since 2.4.
"""

from __future__ import annotations

from collections.abc import Sequence


def double_tree(hosts: int) -> tuple[tuple[int | None, ...], tuple[int | None, ...]]:
    """Return the parents of ``hosts`` in two trees, None at a root.

    In the first, multiples of 2^k are k levels above the odd numbers, and 0 is the root, with one child; the second has
    the hosts in the opposite order, or one further where their number is odd. So inner hosts of one are leaves of the
    other as far as there are two kinds.
    """
    first = [_parent(host, hosts) for host in range(hosts)]
    second: list[int | None] = [None] * hosts
    for host, parent in enumerate(first):
        if hosts % 2:
            second[(host + 1) % hosts] = None if parent is None else (parent + 1) % hosts
        else:
            second[hosts - 1 - host] = None if parent is None else hosts - 1 - parent
    return tuple(first), tuple(second)


def _parent(host: int, hosts: int) -> int | None:
    """The lowest bit of a number goes one place up; where that is beyond the last host, it goes away."""
    if host == 0:
        return None
    bit = host & -host
    higher = (host ^ bit) | (bit << 1)
    return higher if higher < hosts else host ^ bit


def depths(parents: Sequence[int | None]) -> list[int]:
    """How far each host is from the root."""

    def depth(host: int) -> int:
        parent = parents[host]
        return 0 if parent is None else 1 + depth(parent)

    return [depth(host) for host in range(len(parents))]


def deepest_children(parents: Sequence[int | None]) -> list[int | None]:
    """The child of each host under which the tree is deepest, None for a leaf."""
    depth = depths(parents)
    below = list(depth)
    found: list[int | None] = [None] * len(parents)
    for host in sorted(range(len(parents)), key=lambda each: -depth[each]):
        parent = parents[host]
        if parent is not None and (found[parent] is None or below[host] > below[parent]):
            found[parent], below[parent] = host, below[host]
    return found
