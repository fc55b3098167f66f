"""Whether packets keep to the decided paths while a run goes on, not only at its end.

Every few seconds the rules are read back and the packets counted at each switch of a flow's path are
compared: what the first switch sent and the next did not get took another path. A rule that was changed
and changed back between two looks is found by those packets.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from controller.service.messages import VerificationAnswer
from testbed.errors import RunFailedError
from testbed.fidelity.observations import Change
from topologies.mininet_adapter.system import CommandError

INTERVAL_S: Final = 5.0
MOST_OF_TIME: Final = 0.02
"""Reading the rules of a large fabric takes a while: it may keep the controller busy for this share of the time."""
AT_ONCE_S: Final = 0.1
"""No reading of the counters is taken to be shorter than this."""
CONFIRM_S: Final = 0.3
"""A rule that is just being changed is not wrong: what is found is looked for again this much later."""

Check = Callable[[bool], Awaitable[VerificationAnswer]]
"""Asks the switches; the argument says whether thoroughly, whatever it takes."""
Version = Callable[[], int | None]
"""Number of the decision in force; None while it is being carried out."""


async def compared_once(check: Check) -> None:
    """Have all rules compared before jobs run: on a large fabric that takes a second of CPU, later looks little."""
    with contextlib.suppress(CommandError, RunFailedError):  # the watch looks again
        await check(False)


class PathSeries:
    """Answers of the controller one after the other; ``changes`` says what they show. Pure.

    ``slack``: packets of a flow that may be between two switches; ``rate``: packets that it may send in a second, for
    the counters of a large fabric are not all read at once.
    """

    def __init__(self, slack: int, rate: float = 0.0) -> None:
        self._slack, self._rate = slack, rate
        self._right = 0.0
        self._open: dict[str, Change] = {}
        self._closed: list[Change] = []
        self._counted: tuple[int, float, Mapping[str, Sequence[int]], float] | None = None

    def note(
        self,
        now: float,
        version: int,
        mismatches: Sequence[str],
        packets: Mapping[str, Sequence[int]],
        took_s: float = 0.0,
    ) -> None:
        """Take in what was read back at ``now`` under decision ``version``; mismatches are confirmed ones.

        ``took_s``: how long reading took.
        """
        self._note_rules(now, mismatches)
        if self._counted is not None and self._counted[0] == version:
            _, since, before, before_s = self._counted
            self._compare(since, now, before, packets, self._slack + self._rate * max(2 * AT_ONCE_S, before_s + took_s))
        self._counted = version, now, packets, took_s

    def _note_rules(self, now: float, mismatches: Sequence[str]) -> None:
        for line in mismatches:
            begin = self._open[line].from_s if line in self._open else self._right
            self._open[line] = Change("path", begin, now, line)
        for line in [line for line in self._open if line not in mismatches]:
            was = self._open.pop(line)
            self._closed.append(Change("path", was.from_s, now, line, lasting=False))
        if not mismatches:
            self._right = now

    def _compare(
        self,
        since: float,
        now: float,
        before: Mapping[str, Sequence[int]],
        after: Mapping[str, Sequence[int]],
        slack: float,
    ) -> None:
        for flow in before.keys() & after.keys():
            moved = [new - old for old, new in zip(before[flow], after[flow], strict=False)]
            if len(moved) < 2:
                continue
            missed = moved[0] - min(moved[1:])
            if min(moved) < 0:  # counted from zero: under one decision nobody who may does that
                what = f"a rule of flow {flow} was replaced"
            elif missed > slack:
                what = f"{missed} of {moved[0]} packets of flow {flow} left its path"
            else:
                continue
            self._closed.append(Change("path", since, now, what, lasting=False))

    @property
    def changes(self) -> list[Change]:
        """What was found so far."""
        return [*self._closed, *self._open.values()]


class PathWatch:
    """Asks every :data:`INTERVAL_S` until cancelled; times are on the run's clock, which began at ``origin``."""

    def __init__(self, check: Check, version: Version, origin: float, slack: int, rate: float = 0.0) -> None:
        self._check = check
        self._version = version
        self._origin = origin
        self._series = PathSeries(slack, rate)
        self._asking = asyncio.Lock()

    async def run(self) -> None:
        """Look now and then."""
        while True:
            began = time.monotonic()
            with contextlib.suppress(CommandError, RunFailedError):  # the look at the end says if that lasts
                await self.look()
            taken = time.monotonic() - began
            await asyncio.sleep(max(INTERVAL_S, taken / MOST_OF_TIME) - taken)

    async def look(self, thorough: bool = False) -> list[str]:
        """Ask once, unless a decision is just being carried out; return what is not as decided."""
        async with self._asking:
            version, began = self._version(), time.monotonic()
            answer = await self._check(thorough)
            if version is None or self._version() != version:
                return list(answer.mismatches)
            found = list(answer.mismatches)
            if found:
                await asyncio.sleep(CONFIRM_S)
                began = time.monotonic()
                again = await self._check(thorough)
                if self._version() != version:
                    return list(again.mismatches)
                found, answer = [line for line in found if line in set(again.mismatches)], again
            now = time.monotonic()
            self._series.note(now - self._origin, version, found, answer.packets, now - began)
            return found

    @property
    def changes(self) -> list[Change]:
        """What was found so far."""
        return self._series.changes
