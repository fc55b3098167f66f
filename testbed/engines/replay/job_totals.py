"""Numbers by job whose sum every event needs: rows of one array, to add them up without a loop over jobs; held GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from testbed.fluid.maxmin import Floats


class JobTotals:
    """A row of ``width`` numbers for each job that has one."""

    def __init__(self, width: int) -> None:
        self._rows: Floats = np.zeros((16, width))
        self._places: dict[str, int] = {}
        self._free = list(range(16))

    def put(self, name: str, row: Floats) -> None:
        """Let ``row`` be that of the job ``name``, new or known."""
        place = self._places.get(name)
        if place is None:
            place = self._places[name] = self._free_place()
        self._rows[place] = row

    def remove(self, name: str) -> None:
        """Forget the row of a job, if it has one."""
        place = self._places.pop(name, None)
        if place is not None:
            self._rows[place] = 0.0
            self._free.append(place)

    def total(self) -> Floats:
        """The sum of all rows."""
        total: Floats = self._rows.sum(axis=0)
        return total

    def _free_place(self) -> int:
        if not self._free:
            count = len(self._rows)
            self._rows = np.concatenate((self._rows, np.zeros_like(self._rows)))
            self._free.extend(range(count, 2 * count))
        return self._free.pop()


class HeldGpus:
    """How many GPUs are held, each counted once however many jobs share it, and also while they pause."""

    def __init__(self) -> None:
        self._holders: Counter[str] = Counter()

    def take(self, gpus: Sequence[str]) -> None:
        """A job holds ``gpus`` from now on."""
        self._holders.update(gpus)

    def give_back(self, gpus: Sequence[str]) -> None:
        """A job no longer holds ``gpus``."""
        for gpu in gpus:
            self._holders[gpu] -= 1
            if not self._holders[gpu]:
                del self._holders[gpu]

    def __len__(self) -> int:
        return len(self._holders)
