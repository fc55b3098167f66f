"""Which job uses which share of which link, kept up to date: a change costs what the links of the changed job have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from testbed.engines.replay.rates.link_loops import Table, links_shared_among, meet, put_on, take_off, who_slows
from testbed.fluid.maxmin import Flags, Floats, Integers
from testbed.fluid.shared_links import SharedLinks

IN_TURNS: Final = np.inf
"""In place of a share: of what jobs use one at a time, such as GPUs."""
_AT_FIRST: Final = 8

Scalar = TypeVar("Scalar", bound=np.generic)


class LinkUsers:
    """Jobs by name, each at its level, on links 0 to ``links`` - 1."""

    def __init__(self, links: int) -> None:
        self._number: dict[str, int] = {}
        self._names: list[str] = []
        self._unused: list[int] = []
        self._counts: Integers = np.zeros(links, np.int64)
        self._users: Integers = np.zeros((links, _AT_FIRST), np.int64)
        self._parts: Floats = np.zeros((links, _AT_FIRST))
        self._own: Integers = np.zeros((_AT_FIRST, _AT_FIRST), np.int64)
        self._shares: Floats = np.zeros((_AT_FIRST, _AT_FIRST))
        self._sizes: Integers = np.zeros(_AT_FIRST, np.int64)
        self._levels: Integers = np.zeros(_AT_FIRST, np.int64)
        self._met: Flags = np.zeros(_AT_FIRST, np.bool_)
        self._room: Flags = np.zeros(_AT_FIRST, np.bool_)
        self._places: Integers = np.full(_AT_FIRST, -1)

    @property
    def _table(self) -> Table:
        return self._counts, self._users, self._parts, self._own, self._shares, self._sizes, self._levels

    def put(self, job: str, links: Integers, shares: Floats, level: int) -> None:
        """Set the ``links`` of ``job``, new or known, the share of each that it takes at full speed, and its level."""
        number = self._number.get(job)
        if number is None:
            number = self._new(job)
        if len(links) > self._own.shape[1]:
            self._own, self._shares = _wider(self._own, len(links)), _wider(self._shares, len(links))
        while not put_on(number, links, shares, level, self._table, self._met):
            wide = self._users.shape[1] + 1
            self._users, self._parts = _wider(self._users, wide), _wider(self._parts, wide)

    def remove(self, job: str) -> None:
        """Remove ``job``, if it is known."""
        number = self._number.pop(job, None)
        if number is not None:
            take_off(number, self._table, self._met)
            self._unused.append(number)

    def affected(self) -> list[str]:
        """Those that were put since the last call, and all who shared a link with one put or removed, or do so now."""
        found = [self._names[number] for number in np.flatnonzero(self._met).tolist()]
        self._met[:] = False
        return found

    def who_slows(self, jobs: Sequence[str]) -> list[tuple[list[str], bool]]:
        """Who may slow each of ``jobs`` directly, and whether it shares anything with anybody.

        These are the jobs of its own and of more urgent levels with whom it could fill a link, all sending at full
        speed: no other link slows it. And those with whom it uses something in turns.
        """
        starts, found, meets = who_slows(self._numbers(jobs), self._table, self._room)
        ends, names = starts.tolist(), [self._names[number] for number in found.tolist()]
        return [(names[ends[row] : ends[row + 1]], beside) for row, beside in enumerate(meets.tolist())]

    def any_shared(self, links: Integers) -> bool:
        """Whether several jobs use one of ``links``."""
        return bool((self._counts[links] > 1).any())

    def shared_among(self, jobs: Sequence[str]) -> SharedLinks:
        """The links that several of ``jobs`` use, as :func:`testbed.fluid.shared_links.rows_by_job` has them."""
        return links_shared_among(self._numbers(jobs), self._table, self._places)

    def joined(self, jobs: Iterable[str]) -> list[set[str]]:
        """The groups with one of ``jobs``: those that share links, directly or through others."""
        found: list[set[str]] = []
        seen: Flags = np.zeros(len(self._met), np.bool_)
        for job in jobs:
            if seen[self._number[job]]:
                continue
            members, edge = np.zeros_like(seen), [self._number[job]]
            while edge:
                before = members.copy()
                meet(edge.pop(), self._table, members)
                edge += np.flatnonzero(members & ~before & (np.arange(len(seen)) != self._number[job])).tolist()
            seen |= members
            found.append({self._names[number] for number in np.flatnonzero(members).tolist()})
        return found

    def _numbers(self, jobs: Sequence[str]) -> Integers:
        known = self._number
        return np.array([known[job] for job in jobs], np.int64)

    def _new(self, job: str) -> int:
        if self._unused:
            number = self._unused.pop()
            self._names[number] = job
        else:
            number = len(self._names)
            self._names.append(job)
            if number >= len(self._sizes):
                self._own, self._shares = _taller(self._own), _taller(self._shares)
                self._sizes, self._levels = _taller(self._sizes), _taller(self._levels)
                self._met, self._room = _taller(self._met), _taller(self._room)
                self._places = np.full(len(self._sizes), -1)
        self._number[job] = number
        return number


def _wider(table: NDArray[Scalar], columns: int) -> NDArray[Scalar]:
    """``table`` with at least so many columns, and twice as many as before."""
    wide = np.zeros((len(table), max(columns, 2 * table.shape[1])), table.dtype)
    wide[:, : table.shape[1]] = table
    return wide


def _taller(table: NDArray[Scalar]) -> NDArray[Scalar]:
    """``table`` with twice as many rows."""
    return np.concatenate((table, np.zeros_like(table)))
