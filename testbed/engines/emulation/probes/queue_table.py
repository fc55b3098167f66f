"""What moved in the queues of many namespaces from one dump to the next, in a few operations on arrays.

A dump describes the same queues in the same places every time, as long as nobody adds or removes one. So the places
of the counters are found once, message by message; later dumps are read at those places, after a check that every
length, number and attribute header is where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from testbed.engines.emulation.probes.netlink import QueuePlaces, places_of_queues


@dataclass(frozen=True, slots=True)
class Move:
    """What one queue sent and dropped since the last dump and what waits in it now; sizes in bytes."""

    queue: int
    bytes: int
    backlog: int
    drops: int


@dataclass(frozen=True, slots=True)
class Moves:
    """What changed from one dump to the next; queues by their number.

    ``made_anew`` are those whose counters went back, ``missing`` those that were there once and are not now.
    """

    moves: list[Move]
    made_anew: list[int]
    missing: list[int]


class Layout:
    """Where the counters are in dumps of ``sizes`` bytes that follow each other, one from each namespace."""

    def __init__(self, dumps: Sequence[bytes]) -> None:
        self._sizes = [len(dump) for dump in dumps]
        self.queues: list[tuple[int, QueuePlaces]] = []
        """(namespace, interface, handle and places) of every queue, in the order of :meth:`counters`."""
        for namespace, dump in enumerate(dumps):
            self.queues += [(namespace, places) for places in places_of_queues(dump)]
        starts = np.cumsum([0, *self._sizes])
        fixed = [starts[namespace] + place for namespace, places in self.queues for place in places.fixed]
        self._fixed = np.array(fixed, dtype=np.intp) // 4
        self._held = _words(dumps)[self._fixed]
        basic, queue = (
            np.array([starts[namespace] + (at or 0) for namespace, at in column], dtype=np.intp) // 4
            for column in (
                [(namespace, places.basic) for namespace, places in self.queues],
                [(namespace, places.queue) for namespace, places in self.queues],
            )
        )
        self._bytes = np.stack([basic, basic + 1], axis=1)
        self._counts = np.stack([queue + 1, queue + 2], axis=1)
        self._no_bytes = np.array([places.basic is None for _, places in self.queues], dtype=np.bool_)
        self._no_counts = np.array([places.queue is None for _, places in self.queues], dtype=np.bool_)

    def counters(self, dumps: Sequence[bytes]) -> NDArray[np.int64] | None:
        """(bytes, backlog, drops) of every queue, one per row; None if ``dumps`` describe other queues."""
        if [len(dump) for dump in dumps] != self._sizes:
            return None
        words = _words(dumps)
        if not np.array_equal(words[self._fixed], self._held):
            return None
        found = np.empty((len(self.queues), 3), dtype=np.int64)
        found[:, 0] = words[self._bytes].view(np.int64)[:, 0]
        found[:, 1:] = words[self._counts]
        found[self._no_bytes, 0] = 0
        found[self._no_counts, 1:] = 0
        return found


class QueueTable:
    """The queues to watch, by namespace, as (interface, major handle); numbered in this order from 0."""

    def __init__(self, queues: Sequence[Sequence[tuple[int, int]]]) -> None:
        keys = [(namespace, *key) for namespace, known in enumerate(queues) for key in known]
        self._numbers = {key: number for number, key in enumerate(keys)}
        self._layout: Layout | None = None
        self._rows = np.empty(0, dtype=np.intp)
        self._here = np.empty(0, dtype=np.intp)
        self._ever = np.zeros(len(keys), dtype=np.bool_)
        self._before = np.zeros((len(keys), 2), dtype=np.int64)

    def read(self, dumps: Sequence[bytes]) -> Moves:
        """Compare ``dumps``, one from each namespace, with the last ones; before the first everything was 0."""
        now = None if self._layout is None else self._layout.counters(dumps)
        if now is None:
            now = self._find(dumps)
        now, before = now[self._rows], self._before[self._here]
        back = now[:, 0] < before[:, 0]
        before[back] = 0
        moved, drops = now[:, 0] - before[:, 0], now[:, 2] - before[:, 1]
        self._before[self._here] = now[:, ::2]
        changed = np.flatnonzero((moved != 0) | (now[:, 1] != 0) | (drops > 0))
        columns = (self._here[changed], moved[changed], now[changed, 1], drops[changed])
        moves = [Move(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
        absent = self._ever.copy()
        absent[self._here] = False
        return Moves(moves, self._here[back].tolist(), np.flatnonzero(absent).tolist())

    def _find(self, dumps: Sequence[bytes]) -> NDArray[np.int64]:
        """Look for the queues in dumps that are not as the last ones were; return the counters."""
        self._layout = Layout(dumps)
        found = [
            (row, self._numbers.get((namespace, places.interface, places.handle >> 16)))
            for row, (namespace, places) in enumerate(self._layout.queues)
        ]
        here = sorted((number, row) for row, number in found if number is not None)
        self._here = np.array([number for number, _ in here], dtype=np.intp)
        self._rows = np.array([row for _, row in here], dtype=np.intp)
        self._ever[self._here] = True
        counters = self._layout.counters(dumps)
        assert counters is not None
        return counters


def _words(dumps: Sequence[bytes]) -> NDArray[np.uint32]:
    return np.frombuffer(b"".join(dumps), dtype=np.uint32)
