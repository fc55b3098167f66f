"""What differs between two versions of a mapping, found without a step of Python for every entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

    def carry(self, made: dict[str, Made], make: Callable[[Value], Made]) -> None:
        """Bring ``made``, which has ``make`` of each value of the earlier version, to the later one, in its order."""
        for name in self.left.keys() - self.come.keys():
            del made[name]
        made.update((name, make(value)) for name, value in self.come.items())
        if self.moved:
            ordered = {name: made[name] for name in self.now}
            made.clear()
            made.update(ordered)


def changes(before: Mapping[str, Value], now: Mapping[str, Value]) -> Changes[Value]:
    """Return what differs: names, and values that are other objects."""
    stay = before
    if gone := list(filterfalse(now.__contains__, before)):
        stay = dict(before)
        for name in gone:
            del stay[name]
    names = list(now)
    moved = names[: len(stay)] != list(stay)
    if moved:
        other = [name for name, value in now.items() if name not in stay or stay[name] is not value]
    else:
        other = [*compress(names, map(is_not, stay.values(), now.values())), *names[len(stay) :]]
    left = {name: before[name] for name in (*gone, *(name for name in other if name in before))}
    return Changes(left, {name: now[name] for name in other}, now, moved)
