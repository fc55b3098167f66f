"""Cables that fail in an emulation: taken down and up in time, decided on each time, and told from faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any, cast

import pytest

from controller.decision import Decision
from testbed.engines.emulation.cluster import Cluster
from testbed.engines.emulation.link_failures import LinkFailures
from testbed.engines.emulation.reconfiguration import _refuse_to_reopen
from testbed.errors import RunFailedError
from testbed.experiment.failures import Failure
from testbed.fidelity.observations import Change
from testbed.fidelity.verdict import Evidence, judge
from tests.unit.controller.conftest import small

CABLE, BACK = "tor0->agg1", "agg1->tor0"


class Recorder:
    """A cluster whose time passes at once; ``said`` is what was done to it, in order."""

    def __init__(self) -> None:
        self.said: list[object] = []
        self.network = self

    def now(self) -> float:
        return 7.0

    def seconds_until(self, _then_s: float) -> float:
        return -1.0

    def set_cable(self, link: str, up: bool) -> None:
        self.said.append((link, up))

    async def decide(self, cause: str, ask: Callable[[Any], Any], cut: Collection[str]) -> None:
        self.said += [cause, await ask(self), tuple(cut)]

    async def link_changed(self, link: str, *, down: bool) -> tuple[str, bool]:
        return link, down


def failures(*wanted: Failure, cluster: Recorder | None = None) -> LinkFailures:
    return LinkFailures(cast(Cluster, cluster or Recorder()), small(), wanted)


def test_a_cable_is_taken_down_and_up_again_and_decided_on_each_time() -> None:
    cluster = Recorder()
    made = failures(Failure(CABLE, 2.0, 5.0), cluster=cluster)
    asyncio.run(made.live())
    down = [(CABLE, False), f"{CABLE} failed", (CABLE, True), (CABLE, BACK)]
    up = [(CABLE, True), f"{CABLE} works again", (CABLE, False), ()]
    assert cluster.said == [*down, *up]
    (row,) = made.rows()
    assert (row["link"], row["failed_s"], row["restored_s"]) == (CABLE, 7.0, 7.0)
    assert row["avoided_after_s"] is not None and row["used_after_s"] is not None


def test_one_that_fails_for_good_stays_down() -> None:
    cluster = Recorder()
    made = failures(Failure(CABLE, 2.0), cluster=cluster)
    asyncio.run(made.live())
    assert (CABLE, True) not in cluster.said[:1] and len(cluster.said) == 4
    assert made.rows()[0]["restored_s"] is None


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        (Change("link", 4.0, 10.0, "was down", CABLE), True),
        (Change("link", 4.1, 10.3, "had no carrier", BACK), True),
        (Change("link", 1.0, 10.0, "was down", CABLE), False),
        (Change("link", 4.0, 13.0, "was down", CABLE), False),
        (Change("link", 4.0, 10.0, "was down", "tor0->agg0"), False),
        (Change("setting", 4.0, 10.0, "the shaper is gone", CABLE), False),
    ],
)
def test_only_what_the_scenario_asked_for_is_no_fault(change: Change, asked: bool) -> None:
    found = failures(Failure(CABLE, 2.0, 5.0)).unasked([change], dilation=2.0)
    assert found == ([] if asked else [change])


def test_what_is_lost_on_a_cable_that_fails_as_asked_does_not_count() -> None:
    lost = {"other_drops": 8, "retransmits": 8, "out_of_order": 3}
    assert judge(Evidence(**lost, lossless=False)).verdict == "ok"  # type: ignore[arg-type]
    assert judge(Evidence(**lost)).verdict == "degraded"  # type: ignore[arg-type]
    assert judge(Evidence(queue_drops=1, lossless=False)).verdict == "degraded"


def test_a_flow_that_leaves_by_another_port_cannot_leave_a_cable_that_failed() -> None:
    before, after = Decision(ports={"a/0": 20000}), Decision(ports={"a/0": 20001})
    with pytest.raises(RunFailedError, match="flow a/0 cannot leave the cable that failed: its path is chosen by its"):
        _refuse_to_reopen(["a/0"], before, after)
    _refuse_to_reopen(["a/0"], before, before)
