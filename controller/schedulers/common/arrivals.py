"""Jobs numbered in the order in which they came: what decides between equal ones, whatever their names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from controller.schedulers.common.changes import Changes


class Arrivals:
    """Name -> number; the order of numbers is that of the mapping that is followed."""

    def __init__(self) -> None:
        self.number: dict[str, int] = {}
        self._next = 0
        self._gone: list[str] = []

    def follow(self, changed: Changes[Any]) -> None:
        """Number the jobs that have come; all of them again where ``changed`` has moved.

        Those that left keep their numbers until the next time: what is sorted by numbers still has to find them.
        """
        if changed.moved:
            self._number_again(changed.now)
            return
        for name in self._gone:
            del self.number[name]
        self._gone = [name for name in changed.left if name not in changed.now]
        for name in changed.come:
            if name not in self.number:
                self.number[name] = self._next
                self._next += 1

    def _number_again(self, names: Iterable[str]) -> None:
        self.number.clear()
        self.number.update((name, number) for number, name in enumerate(names))
        self._next, self._gone = len(self.number), []
