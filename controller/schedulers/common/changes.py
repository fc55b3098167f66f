"""What differs between two versions of a mapping, found without a step of Python for every entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import compress, filterfalse
from operator import is_not
from typing import Generic, TypeVar

Value = TypeVar("Value")
Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Changes(Generic[Value]):
    """Between two versions: entries that ``left``, as they were, and that have ``come``; a changed one did both.

    ``now``: the later version. ``moved``: whether it is in another order than the earlier one would be without those
    that left for good, and with new ones at the end.
    """

    left: Mapping[str, Value]
    come: Mapping[str, Value]
    now: Mapping[str, Value]
    moved: bool

    def __bool__(self) -> bool:
        """Whether anything differs, the order included."""
        return bool(self.left or self.come or self.moved)

    def carry(self, made: dict[str, Made], make: Callable[[Value], Made]) -> Changes[Made]:
        """Bring ``made``, which has ``make`` of each value of the earlier version, to the later one, in its order.

        Return what changed in it.
        """
        left = {name: made[name] for name in self.left}
        for name in self.left:
            if name not in self.come:
                del made[name]
        come = {name: make(value) for name, value in self.come.items()}
        made.update(come)
        if self.moved:
            in_order(made, self.now)
        return Changes(left, come, made, self.moved)

    def among(self, chosen: dict[str, Value], wanted: Callable[[Value], bool]) -> Changes[Value]:
        """Bring ``chosen``, which has the entries of the earlier version that are ``wanted``, to the later one.

        Return what changed in it.
        """
        left = {name: value for name, value in self.left.items() if wanted(value)}
        come = {name: value for name, value in self.come.items() if wanted(value)}
        for name in left:
            if name not in come:
                del chosen[name]
        chosen.update(come)
        moved = self.moved or any(name in self.left and name not in left for name in come)
        if moved:
            in_order(chosen, self.now)
        return Changes(left, come, chosen, moved)


def in_order(made: dict[str, Made], names: Iterable[str]) -> None:
    """Put the entries of ``made`` into the order of ``names``, which has all of them."""
    order = list(filter(made.__contains__, names))
    values = list(map(made.__getitem__, order))
    made.clear()
    made.update(zip(order, values, strict=True))


def changes(before: Mapping[str, Value], now: Mapping[str, Value]) -> Changes[Value]:
    """Return what differs: names, and values, never None, that are other objects."""
    stay = before
    if gone := list(filterfalse(now.__contains__, before)):
        stay = dict(before)
        for name in gone:
            del stay[name]
    names = list(now)
    moved = names[: len(stay)] != list(stay)
    if moved:
        other = list(compress(names, map(is_not, map(stay.get, now), now.values())))
    else:
        other = [*compress(names, map(is_not, stay.values(), now.values())), *names[len(stay) :]]
    left = {name: before[name] for name in (*gone, *(name for name in other if name in before))}
    return Changes(left, {name: now[name] for name in other}, now, moved)
