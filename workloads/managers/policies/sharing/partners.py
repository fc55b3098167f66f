"""Which running job another one joins: a draw among those that promise a gain, without a look at each of them.

Two jobs gain if the longer of the stages that meet, times the overhead, take no longer than both iterations in turn.
With (compute, communication) as points in a plane, the partners of a job lie in a quadrilateral around its mirror
image, so a tree of boxes finds them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from workloads.managers.jobs import Running, Waiting

Point = tuple[float, float]
"""Seconds of compute and of communication in an iteration."""
_ROUNDING: Final = 1e-9


def gains(one: Point, other: Point, overhead: float) -> bool:
    """Whether two jobs that share GPUs are as fast as in turn (:func:`.interleaving.worth_sharing`); not if unknown."""
    if not (any(one) and any(other)):
        return False
    return (max(one[0], other[1]) + max(one[1], other[0])) * overhead <= (one[0] + one[1]) + (other[0] + other[1])


class Partners:
    """Running jobs that others may join, by their number of GPUs."""

    def __init__(self, running: Iterable[Running], overhead: float, seed: int) -> None:
        self._seed = seed
        by_size: dict[int, list[Running]] = {}
        for each in running:
            if any(_point(each.job)):  # of others nothing is known
                by_size.setdefault(len(each.gpus), []).append(each)
        self._by_size = {size: _OfOneSize(jobs, overhead) for size, jobs in by_size.items()}

    def take(self, job: Waiting) -> Running | None:
        """Draw one that ``job`` promises to gain with, which no other may join then; None if there is none."""
        found = self._by_size.get(job.gpus)
        if found is None or not any(_point(job)):
            return None
        return found.take(job, Random(f"{self._seed}|{job.draw_key}"))


class _OfOneSize:
    """Draws from all first, and only if that one does not gain from smaller and smaller boxes of those that may."""

    def __init__(self, running: Sequence[Running], overhead: float) -> None:
        kinds: dict[Point, list[Running]] = {}
        for each in running:
            kinds.setdefault(_point(each.job), []).append(each)
        self._running = [each for alike in kinds.values() for each in alike]
        self._overhead = overhead
        self._left = list(range(len(self._running)))
        self._boxes: _Boxes | None = None

    def take(self, job: Waiting, random: Random) -> Running | None:
        """One that gains and that ``job`` was not separated from; each of them has the same chance."""
        mine = _point(job)

        def suits(index: int) -> bool:
            each = self._running[index]
            return each.name not in job.apart_from and gains(_point(each.job), mine, self._overhead)

        index = self._of_all(job, random)
        if index is not None and not suits(index):
            index = self._in_boxes().draw(mine, self._overhead, suits, random)
        if index is None:
            return None
        del self._left[bisect_left(self._left, index)]
        if self._boxes is not None:
            self._boxes.remove(index)
        return self._running[index]

    def _of_all(self, job: Waiting, random: Random) -> int | None:
        """Any, and the next one instead of those that ``job`` was separated from."""
        count = len(self._left)
        first = random.randrange(count) if count else 0
        places = (self._left[(first + place) % count] for place in range(count))
        return next((index for index in places if self._running[index].name not in job.apart_from), None)

    def _in_boxes(self) -> _Boxes:
        if self._boxes is None:
            self._boxes = _Boxes({index: _point(self._running[index].job) for index in self._left})
        return self._boxes


@dataclass(frozen=True, slots=True)
class _Box:
    """The points at places ``first`` to before ``end`` of the tree's order, and the halves of the box."""

    first: int
    end: int
    least: Point
    most: Point
    halves: tuple[_Box, ...]

    def may_gain(self, mine: Point, overhead: float) -> bool:
        """Whether a job could gain with a point of the box: with the nearest to its mirror image."""
        nearest = (
            min(max(mine[1], self.least[0]), self.most[0]),
            min(max(mine[0], self.least[1]), self.most[1]),
        )
        exact = self.least == self.most
        return gains(nearest, mine, overhead if exact else overhead * (1 - _ROUNDING))


class _Boxes:
    """A tree of boxes around ``points``, each with half of the points of the one above it."""

    def __init__(self, points: dict[int, Point]) -> None:
        self._points, self._order = points, list(points)
        self._root = self._box(0, len(self._order))
        self._place = {index: place for place, index in enumerate(self._order)}
        self._left = list(range(len(self._order)))

    def draw(self, mine: Point, overhead: float, suits: Callable[[int], bool], random: Random) -> int | None:
        """Draw one that suits. As long as one is drawn that does not, those that cannot are left out, box by box.

        Whichever boxes are left, all that suit are in them: each has the same chance.
        """
        boxes: Sequence[_Box] = [self._root]
        while boxes := [box for box in boxes if box.may_gain(mine, overhead)]:
            starts = [bisect_left(self._left, box.first) for box in boxes]
            sizes = [bisect_left(self._left, box.end) - start for box, start in zip(boxes, starts, strict=True)]
            if not sum(sizes):
                return None
            index = self._at(random.randrange(sum(sizes)), starts, sizes)
            if suits(index):
                return index
            parts = (part for box, size in zip(boxes, sizes, strict=True) if size for part in box.halves or (box,))
            boxes = [part for part in parts if part.halves or self._order[part.first] != index]
        return None

    def remove(self, index: int) -> None:
        """Leave ``index`` out of all draws."""
        del self._left[bisect_left(self._left, self._place[index])]

    def _at(self, number: int, starts: Sequence[int], sizes: Sequence[int]) -> int:
        """The item ``number`` of all boxes."""
        for start, size in zip(starts, sizes, strict=True):
            if number < size:
                return self._order[self._left[start + number]]
            number -= size
        raise IndexError(number)

    def _box(self, first: int, end: int) -> _Box:
        """The box of these places, which are sorted along its longer side before it is halved."""
        inside = [self._points[index] for index in self._order[first:end]]
        least, most = _corner(min, inside), _corner(max, inside)
        if end - first == 1:
            return _Box(first, end, least, most, ())
        side = 0 if most[0] - least[0] >= most[1] - least[1] else 1
        self._order[first:end] = sorted(self._order[first:end], key=lambda index: self._points[index][side])
        middle = (first + end) // 2
        return _Box(first, end, least, most, (self._box(first, middle), self._box(middle, end)))


def _corner(least_or_most: Callable[[Iterable[float]], float], points: Sequence[Point]) -> Point:
    return least_or_most(point[0] for point in points), least_or_most(point[1] for point in points)


def _point(job: Waiting) -> Point:
    return job.compute_s, job.communication_s
