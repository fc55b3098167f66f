"""Parts that fail in an emulation: carried out in time, decided on each time, and told from faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from testbed.api import prepare
from testbed.engines.common.live_jobs import LiveJob, LiveJobs
from testbed.engines.emulation.cluster import Cluster
from testbed.engines.emulation.failures import Failures, other_ports
from testbed.experiment.experiment import Scale
from testbed.experiment.failures import Failure, Recovery
from testbed.fidelity.observations import Change
from testbed.fidelity.verdict import Evidence, judge
from tests.unit.controller.conftest import FABRICS, ring, small
from topologies.mininet_adapter.failing_parts import FailingParts
from workloads.job import Job

CABLE, BACK = "tor0->agg1", "agg1->tor0"
FABRIC = small()
EXPERIMENT = replace(prepare("hello.yaml", engine="flow").experiments[0], fabric=FABRIC)


class Recorder:
    """A cluster whose time passes at once; ``said`` is what was done to it and to parts of its network, in order."""

    def __init__(self, *jobs: Job) -> None:
        self.said: list[object] = []
        self.jobs = LiveJobs(EXPERIMENT)
        for job in jobs:
            self.jobs.arrive(job)
            self.jobs.begin(job.name, 0.0)
        self.before_opening = self.managed = self.managed_run = None

    def now(self) -> float:
        return 7.0

    def seconds_until(self, _then_s: float) -> float:
        return -1.0

    def set_cables(self, links: Sequence[str], *, up: bool) -> None:
        self.said.append((*links, up))

    def use_ports(self, ways: Mapping[tuple[str, str], str]) -> None:
        if ways:
            self.said.append(dict(ways))

    def degrade(self, cable: str, share: float, loss: float) -> None:
        self.said.append((cable, share, loss))

    async def decide(self, cause: str, ask: Callable[[Any], Any], prepared: Callable[[], Any]) -> None:
        self.said += [cause, await ask(self)]
        await prepared()

    async def links_changed(self, links: Sequence[str], *, down: bool) -> tuple[object, ...]:
        return (*links, "down" if down else "up")

    async def hold(self, names: Collection[str]) -> None:
        if names:
            self.said.append(("hold", *sorted(names)))

    def release(self, names: Collection[str]) -> None:
        if names:
            self.said.append(("release", *sorted(names)))

    async def stop(self, live: LiveJob) -> None:
        if not live.stopped:
            live.stopped = True
            self.said.append(("stop", live.job.name))

    async def restart(self, live: LiveJob) -> None:
        self.jobs.restart(live.job.name)
        self.said.append(("restart", live.job.name))


def failures(*wanted: Failure, cluster: Recorder | None = None, timeout_s: float = 600.0) -> Failures:
    cluster = cluster or Recorder()
    experiment = replace(EXPERIMENT, scale=Scale(1000.0, 2.0), failures=wanted, recovery=Recovery(timeout_s))
    made = Failures(cast(Cluster, cluster), cast(FailingParts, cluster), experiment)
    return made


def lived(made: Failures) -> None:
    async def until_quiet() -> None:
        task = asyncio.create_task(made.live())
        await asyncio.wait([task], timeout=0.2)
        if task.done():
            task.result()
        task.cancel()

    asyncio.run(until_quiet())


def test_a_cable_is_taken_down_and_up_again_and_decided_on_each_time() -> None:
    cluster = Recorder()
    made = failures(Failure(BACK, 2.0, 5.0), cluster=cluster)
    lived(made)
    down = [f"{BACK} failed", (CABLE, "down"), (CABLE, False)]
    up = [(CABLE, True), f"{BACK} works again", (CABLE, "up")]
    assert cluster.said == [*down, *up]
    (row,) = made.documents()["failures"]
    assert (row["part"], row["failed_s"], row["restored_s"]) == (BACK, 7.0, 7.0)
    assert row["avoided_after_s"] is not None and row["used_after_s"] is not None


def test_one_that_fails_for_good_stays_down() -> None:
    cluster = Recorder()
    made = failures(Failure(CABLE, 2.0), cluster=cluster)
    lived(made)
    assert len(cluster.said) == 3
    assert made.documents()["failures"][0]["restored_s"] is None


def test_a_job_is_held_before_its_last_cable_fails_and_goes_on_when_rules_are_there_again() -> None:
    cluster = Recorder(ring("a", FABRIC, [0, 2]), ring("b", FABRIC, [1, 3], first_port=30000))
    made = failures(Failure("h0n0", 2.0, 5.0), cluster=cluster)
    lived(made)
    assert cluster.said[:2] == [("hold", "a"), "h0n0 failed"]
    assert cluster.said[-1] == ("release", "a")
    (row,) = made.documents()["outages"]
    assert (row["job"], row["from_s"], row["until_s"], row["ended_s"]) == ("a", 2.0, 5.0, None)


def test_after_the_timeout_a_job_is_stopped_and_when_it_can_it_starts_again() -> None:
    cluster = Recorder(ring("a", FABRIC, [0, 2]))
    made = failures(Failure("h0n0", 2.0, 5.0), cluster=cluster, timeout_s=0.0)
    lived(made)
    assert ("stop", "a") in cluster.said and ("restart", "a") in cluster.said


def test_a_failed_host_takes_its_jobs_down_at_once() -> None:
    cluster = Recorder(ring("a", FABRIC, [0, 2]))
    lived(failures(Failure("h0", 2.0), cluster=cluster))
    assert cluster.said[-1] == ("stop", "a")


def test_a_degraded_cable_changes_nothing_for_the_scheduler() -> None:
    cluster = Recorder()
    made = failures(Failure(CABLE, 2.0, 5.0, share=0.5, loss=0.01), cluster=cluster)
    lived(made)
    assert cluster.said == [(CABLE, 0.5, 0.01), (CABLE, 1.0, 0.0)]
    assert made.degraded_links == {CABLE, BACK}
    assert replace(EXPERIMENT, failures=(Failure(CABLE, 2.0, loss=0.01),)).loses_packets


def test_packets_of_a_dual_homed_nic_leave_and_arrive_by_its_other_port() -> None:
    fabric = FABRICS["hpn-planes"]()
    job = ring("a", fabric, [0, 4])
    ways = other_ports(fabric, fabric.without([fabric.uplink("h0n0p0").name]), [job])
    assert set(ways.items()) == {
        (("h0n0p0", "h4n0p0"), "h0n0p1"),
        (("h4n0p0", "h0n0p0"), "h4n0p1"),
    }


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        (Change("link", 4.0, 10.0, "was down", CABLE), True),
        (Change("link", 4.1, 10.3, "had no carrier", BACK), True),
        (Change("link", 1.0, 10.0, "was down", CABLE), False),
        (Change("link", 4.0, 13.0, "was down", CABLE), False),
        (Change("link", 4.0, 10.0, "was down", "tor0->agg0"), False),
        (Change("setting", 4.0, 10.0, "the shaper is gone", CABLE), False),
        (Change("setting", 4.0, 17.0, "the shaper has another rate", "tor1->agg0"), True),
    ],
)
def test_only_what_the_scenario_asked_for_is_no_fault(change: Change, asked: bool) -> None:
    asked_for = (Failure(CABLE, 2.0, 5.0), Failure("tor1->agg0", 2.0, 5.0, share=0.5))
    found = failures(*asked_for).unasked([change])
    assert found == ([] if asked else [change])


def test_what_is_lost_on_a_cable_that_fails_as_asked_does_not_count() -> None:
    lost = {"other_drops": 8, "retransmits": 8, "out_of_order": 3}
    assert judge(Evidence(**lost, lossless=False)).verdict == "ok"  # type: ignore[arg-type]
    assert judge(Evidence(**lost)).verdict == "degraded"  # type: ignore[arg-type]
    assert judge(Evidence(queue_drops=1, lossless=False)).verdict == "degraded"
