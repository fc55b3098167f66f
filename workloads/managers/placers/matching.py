"""Maximum-weight matching in a general graph: Edmonds's blossom algorithm, primal-dual form.

J. Edmonds, "Maximum matching and a polyhedron with 0,1-vertices" (1965); the phases with dual variables
follow Z. Galil, "Efficient algorithms for finding maximum matching in graphs" (ACM Computing Surveys, 1986).
Weights are whole numbers, so that every dual value is exact. Slacks are found for all edges at once with
numpy: at most n^2 steps of n^2 elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

_FREE: Final = 0
_OUTER: Final = 1
_INNER: Final = 2
_NEVER: Final = np.iinfo(np.int64).max

Edge = tuple[int, int]


def maximum_weight_matching(weights: Sequence[Sequence[int]]) -> tuple[Edge, ...]:
    """Return pairs (i, j), i < j, of a matching whose weights add up to the most.

    ``weights`` is a symmetric n x n matrix of whole numbers; where it is 0 or less there is no edge. The
    same matrix gives the same pairs. ``ValueError`` if it is not square or not symmetric.
    """
    table = np.array(weights, dtype=np.int64).reshape(len(weights), -1) if len(weights) else np.zeros((0, 0), np.int64)
    if table.shape != (len(weights), len(weights)) or (table != table.T).any():
        raise ValueError("weights of a matching must be a square, symmetric matrix")
    if len(table) < 2 or table.max() <= 0:
        return ()
    mate = _Search(np.maximum(table, 0)).run()
    return tuple((one, other) for one, other in enumerate(mate) if one < other and table[one, other] > 0)


@dataclass(slots=True)
class _Blossom:
    """An odd cycle of nodes: ``links[k]`` joins a vertex of ``parts[k]`` to one of the part after it.

    ``parts[0]`` holds the base; the others are matched in pairs over the links of odd number.
    """

    parts: list[int]
    links: list[Edge]
    dual: int = 0


class _Search:
    """Nodes are vertices (0..n-1) and blossoms (from n); ``top`` has the outermost node of each vertex.

    Dual values are doubled: a vertex starts at the largest weight, the slack of an edge is
    dual + dual - 2 weight, and of an edge inside a blossom it stays 0.
    """

    def __init__(self, weights: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> None:
        self.size = len(weights)
        self.doubled = 2 * weights
        self.dual = np.full(self.size, weights.max(), dtype=np.int64)
        self.mate = [-1] * self.size
        self.top = np.arange(self.size)
        self.blossoms: dict[int, _Blossom] = {}
        self.next_node = self.size
        self.label: dict[int, int] = {}
        self.via: dict[int, Edge] = {}

    def run(self) -> list[int]:
        """Match one pair of trees after the other, until no matching weighs more."""
        while self._grow_until_augmented():
            pass
        return self.mate

    def _grow_until_augmented(self) -> bool:
        """Grow trees from all unmatched vertices; False when the dual values show that the matching is maximal."""
        tops = dict.fromkeys(self.top.tolist())
        self.label = {node: _OUTER if self.mate[self._base(node)] < 0 else _FREE for node in tops}
        self.via = {}
        while True:
            labels = np.array([self.label[node] for node in self.top.tolist()])
            if not (labels == _OUTER).any():
                return False
            step, edge, dissolved = self._next_step(labels)
            end = int(self.dual[labels == _OUTER].min())
            self._adjust(labels, min(step, end))
            if end <= step:
                return False
            if dissolved is not None:
                self._dissolve(dissolved)
            elif self._follow(edge):
                return True

    def _next_step(self, labels: np.ndarray[tuple[int], np.dtype[np.int64]]) -> tuple[int, Edge, int | None]:
        """How far the dual values can move, and what then happens: an edge is tight, or a blossom dissolves."""
        outer = np.flatnonzero(labels == _OUTER)
        slack = self.dual[outer][:, None] + self.dual[None, :] - self.doubled[outer]
        slack = np.where(labels[None, :] == _OUTER, slack // 2, slack)
        slack[(labels[None, :] == _INNER) | (self.top[outer][:, None] == self.top[None, :])] = _NEVER
        row, column = divmod(int(slack.argmin()), self.size)
        step, dissolved = int(slack[row, column]), None
        for node, blossom in self.blossoms.items():
            if self.label.get(node) == _INNER and blossom.dual // 2 < step:
                step, dissolved = blossom.dual // 2, node
        return step, (int(outer[row]), column), dissolved

    def _adjust(self, labels: np.ndarray[tuple[int], np.dtype[np.int64]], step: int) -> None:
        self.dual[labels == _OUTER] -= step
        self.dual[labels == _INNER] += step
        for node, blossom in self.blossoms.items():
            label = self.label.get(node, _FREE)
            blossom.dual += 2 * step * ((label == _OUTER) - (label == _INNER))

    def _follow(self, edge: Edge) -> bool:
        """Use a tight edge out of an outer node; True if it joins two trees, and so gives a pair more."""
        one, other = int(self.top[edge[0]]), int(self.top[edge[1]])
        if self.label[other] == _FREE:
            self.label[other], self.via[other] = _INNER, edge
            self.label[int(self.top[self.mate[self._base(other)]])] = _OUTER
            return False
        left, right = self._to_root(one), self._to_root(other)
        if left[-1] != right[-1]:
            self._turn(edge[0], edge[1])
            self._turn(edge[1], edge[0])
            return True
        while len(left) > 1 and len(right) > 1 and left[-2] == right[-2]:
            left.pop()
            right.pop()
        self._shrink(left, right, edge)
        return False

    def _above(self, node: int) -> Edge:
        """The edge from a node of a tree towards its root: (vertex above, vertex of the node)."""
        if self.label[node] == _INNER:
            return self.via[node]
        base = self._base(node)
        return self.mate[base], base

    def _to_root(self, node: int) -> list[int]:
        path = [node]
        while (above := self._above(path[-1])[0]) >= 0:
            path.append(int(self.top[above]))
        return path

    def _shrink(self, left: list[int], right: list[int], edge: Edge) -> None:
        """Contract the paths from both ends of ``edge`` up to their common node (their last) into a blossom."""
        parts = [*reversed(left), *right[:-1]]
        links = [self._above(node) for node in reversed(left[:-1])]
        links.append(edge)
        links += [self._above(node)[::-1] for node in right[:-1]]
        new, self.next_node = self.next_node, self.next_node + 1
        self.blossoms[new] = _Blossom(parts, links)
        for part in parts:
            del self.label[part]
        self.label[new] = _OUTER
        self.top[list(self._vertices(new))] = new

    def _dissolve(self, node: int) -> None:
        """Expand an inner blossom; its parts on the even path from entry to base stay in the tree."""
        blossom, via = self.blossoms.pop(node), self.via.pop(node)
        del self.label[node]
        for part in blossom.parts:
            self.top[list(self._vertices(part))] = part
            self.label[part] = _FREE
        count, entry = len(blossom.parts), blossom.parts.index(int(self.top[via[1]]))
        step = 1 if entry % 2 else -1
        while True:
            self.label[blossom.parts[entry]], self.via[blossom.parts[entry]] = _INNER, via
            if entry == 0:
                return
            between, after = (entry + step) % count, (entry + 2 * step) % count
            self.label[blossom.parts[between]] = _OUTER
            via = blossom.links[between] if step > 0 else blossom.links[after][::-1]
            entry = after

    def _turn(self, vertex: int, partner: int) -> None:
        """Match ``vertex`` of an outer node to ``partner``, and turn the matching over up to the root."""
        while True:
            node = int(self.top[vertex])
            before = self.mate[self._base(node)]
            self._rebase(node, vertex)
            self.mate[vertex] = partner
            if before < 0:
                return
            inner = int(self.top[before])
            above, entry = self.via[inner]
            self._rebase(inner, entry)
            self.mate[entry] = above
            vertex, partner = above, entry

    def _rebase(self, node: int, vertex: int) -> None:
        """Match the inside of ``node`` so that ``vertex`` is left over."""
        blossom = self.blossoms.get(node)
        if blossom is None:
            return
        first = next(number for number, part in enumerate(blossom.parts) if vertex in self._vertices(part))
        blossom.parts = blossom.parts[first:] + blossom.parts[:first]
        blossom.links = blossom.links[first:] + blossom.links[:first]
        self._rebase(blossom.parts[0], vertex)
        for number in range(1, len(blossom.parts), 2):
            one, other = blossom.links[number]
            self._rebase(blossom.parts[number], one)
            self._rebase(blossom.parts[number + 1], other)
            self.mate[one], self.mate[other] = other, one

    def _base(self, node: int) -> int:
        while node in self.blossoms:
            node = self.blossoms[node].parts[0]
        return node

    def _vertices(self, node: int) -> Iterator[int]:
        if node not in self.blossoms:
            yield node
            return
        for part in self.blossoms[node].parts:
            yield from self._vertices(part)
