"""The cables of a scenario that fail: taken down and up again in the kernel, and decided on anew each time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from testbed.engines.emulation.cluster import Cluster
from testbed.experiment.failures import Failure
from testbed.fidelity.observations import Change
from topologies.fabric import Fabric

GRACE_S: Final = 1.0
"""The state of an interface is looked at now and then; this much later it still is what was asked for."""


@dataclass
class FailedCable:
    """What became of one: undilated seconds of the run, and seconds of the machine until new rules were in force."""

    link: str
    failed_s: float
    avoided_after_s: float | None = None
    restored_s: float | None = None
    used_after_s: float | None = None


class LinkFailures:
    """Carries ``failures`` out on ``cluster``; ``record`` is what became of each."""

    def __init__(self, cluster: Cluster, fabric: Fabric, failures: Sequence[Failure]) -> None:
        self._cluster = cluster
        self._fabric = fabric
        self._failures = failures
        self.record: list[FailedCable] = []

    async def live(self) -> None:
        """Let every cable fail, and come back, in its time."""
        await asyncio.gather(*(self._one(failure) for failure in self._failures))

    async def _one(self, failure: Failure) -> None:
        await asyncio.sleep(max(0.0, self._cluster.seconds_until(failure.at_s)))
        made = FailedCable(failure.part, self._cluster.now())
        self.record.append(made)
        made.avoided_after_s = await self._change(failure.part, up=False)
        if failure.until_s is None:
            return
        await asyncio.sleep(max(0.0, self._cluster.seconds_until(failure.until_s)))
        made.restored_s = self._cluster.now()
        made.used_after_s = await self._change(failure.part, up=True)

    async def _change(self, link: str, *, up: bool) -> float:
        """Set a cable up or down; return the seconds until packets follow the rules of the decision on it."""
        began = time.monotonic()
        await asyncio.to_thread(self._cluster.network.set_cable, link, up)
        await self._cluster.decide(
            f"{link} {'works again' if up else 'failed'}",
            lambda there: there.link_changed(link, down=not up),
            () if up else self._both(link),
        )
        return round(time.monotonic() - began, 4)

    def _both(self, link: str) -> tuple[str, str]:
        return link, self._fabric.links[link].reverse

    def unasked(self, changes: Sequence[Change], dilation: float) -> list[Change]:
        """Those of ``changes`` that the scenario did not ask for; theirs are seconds of the machine."""
        return [change for change in changes if not any(self._asked(change, each, dilation) for each in self._failures)]

    def _asked(self, change: Change, failure: Failure, dilation: float) -> bool:
        if change.kind != "link" or change.link not in self._both(failure.part):
            return False
        began = change.from_s >= failure.at_s * dilation - GRACE_S
        return began and (failure.until_s is None or change.to_s <= failure.until_s * dilation + GRACE_S)

    def rows(self) -> list[dict[str, object]]:
        """What became of each, for the run's directory."""
        return [asdict(each) for each in self.record]
