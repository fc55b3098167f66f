"""Long-run rates: an event settles only those whom it can affect."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.decision import Decision
from controller.schedulers.crux.path_index import FabricIndex
from testbed.engines.replay.inputs import TraceJobs
from testbed.engines.replay.rates.link_users import LinkUsers
from testbed.engines.replay.rates.long_run_rates import LongRunRates, taken_together
from testbed.engines.replay.running_job import ReplayedJob, ReplayRequest
from testbed.engines.replay.traffic import Traffic, link_classes
from testbed.fluid.numerical_settings import STANDARD
from testbed.fluid.steady_state import settle
from topologies.clos import clos
from topologies.fabric import Fabric
from workloads.managers.account import Account

FABRIC = clos(hosts=4, gpus_per_host=4, nics_per_host=1, tors=4, aggregations=1, port_rate=100e9, fabric_rate=100e9)


class Cluster:
    """Jobs on GPUs of the four hosts, at levels; all cross the one aggregation switch."""

    def __init__(self, fabric: Fabric = FABRIC) -> None:
        self.fabric, self.index = fabric, FabricIndex.of(fabric)
        self.running: dict[str, ReplayedJob] = {}
        self.users = LinkUsers(self.index.absent)
        self.rates = LongRunRates(self.running, self.users, STANDARD)

    def start(self, name: str, gpus: list[int], level: int) -> dict[str, float]:
        request = ReplayRequest(name, 0.0, 1000.0, len(gpus), "crux-bert")
        job = TraceJobs(self.fabric).build(request, tuple(self.fabric.gpus[gpu] for gpu in gpus))
        traffic = Traffic(job, self.index, link_classes(self.index), seed=1)
        traffic.follow(traffic.default)
        fluid = traffic.fluid(Decision(levels={name: level}), 8)
        self.running[name] = ReplayedJob(request, traffic, fluid, Account(name, len(gpus), 0.0), 1000.0)
        links, seconds = traffic.arrays
        self.users.put(name, links, seconds / fluid.communication_s, level)
        return self.rates.after(self.users.affected(), 0.0)

    def end(self, name: str) -> dict[str, float]:
        del self.running[name]
        self.users.remove(name)
        return self.rates.after(self.users.affected(), 0.0)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_job_alone_is_not_settled(cluster: Cluster) -> None:
    assert cluster.start("one", [0, 4], 0) == {"one": pytest.approx(1 / cluster.running["one"].fluid.period_s)}
    assert cluster.rates.settled == 0


def test_only_the_less_urgent_job_is_affected(cluster: Cluster) -> None:
    cluster.start("urgent", [0, 4], 0)
    assert set(cluster.start("other", [1, 5], 1)) == {"other"}
    assert set(cluster.start("last", [2, 6], 2)) == {"last"}
    assert set(cluster.start("first", [3, 7], 0)) == {"urgent", "other", "last", "first"}, "its level is shared"


def test_the_rates_are_those_of_the_whole_group(cluster: Cluster) -> None:
    found: dict[str, float] = {}
    for level, name in enumerate(("one", "two", "three")):
        found |= cluster.start(name, [level, 4 + level], level)
    whole = settle([each.fluid for each in cluster.running.values()]).rates
    assert list(found.values()) == pytest.approx(whole, rel=0.01)
    assert found["three"] < found["one"]


def test_who_runs_beside_the_same_jobs_again_has_the_rate_that_it_had(cluster: Cluster) -> None:
    cluster.start("urgent", [0, 4], 0)
    before = cluster.start("other", [1, 5], 2)
    cluster.start("between", [2, 6], 1)
    settled = cluster.rates.settled
    assert cluster.end("between") == before
    assert cluster.rates.settled == settled


@pytest.mark.parametrize("levels", [(0, 0), (0, 1), (1, 0)])
@pytest.mark.parametrize(("rate", "slows"), [(150e9, True), (200e9, False)])
def test_a_link_that_all_who_send_cannot_fill_slows_nobody(levels: tuple[int, int], rate: float, slows: bool) -> None:
    two_tors = clos(
        hosts=4, gpus_per_host=4, nics_per_host=1, tors=2, aggregations=1, port_rate=100e9, fabric_rate=rate
    )
    cluster = Cluster(two_tors)
    for name, gpus, level in zip(("one", "two"), ([0, 8], [4, 12]), levels, strict=True):
        cluster.start(name, gpus, level)
    assert (cluster.rates.settled > 0) == slows
    assert all(each.shares for each in cluster.running.values())
    alone = {name: 1 / each.fluid.period_s for name, each in cluster.running.items()}
    found = cluster.rates.after(list(cluster.running), 0.0)
    assert slows or not found or found == alone


@given(st.lists(st.sets(st.integers(0, 12), min_size=1), max_size=8))
def test_sets_with_most_jobs_in_common_are_taken_together_and_each_is_part_of_one(sets: list[set[int]]) -> None:
    cluster = Cluster()
    cluster.start("any", [0, 4], 0)
    running = cluster.running["any"]
    unions = taken_together([{str(job): running for job in jobs} for jobs in sets])
    assert len(unions) <= len(sets)
    assert {job for union in unions for job in union} == {str(job) for jobs in sets for job in jobs}
    for jobs in sets:
        assert any({str(job) for job in jobs} <= union.keys() for union in unions)
    pair = [{"a": running, "b": running, "c": running}, {"b": running, "c": running, "d": running}]
    assert [sorted(union) for union in taken_together(pair)] == [["a", "b", "c", "d"]]
    assert len(taken_together([*pair[:1], {"c": running, "e": running, "f": running}])) == 2


def test_sets_do_not_grow_beyond_40_jobs() -> None:
    cluster = Cluster()
    cluster.start("any", [0, 4], 0)
    running = cluster.running["any"]
    sets = [{str(job): running for job in range(first, first + 24)} for first in range(0, 40, 8)]
    assert [len(union) for union in taken_together(sets)] == [40, 32]
