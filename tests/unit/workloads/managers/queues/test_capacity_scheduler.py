"""The Capacity Scheduler: guaranteed and maximum capacities in percent, level by level."""

from __future__ import annotations

from typing import Any

import pytest

from topologies.clos import clos
from workloads.managers.cluster_state import empty_cluster
from workloads.managers.jobs import Waiting
from workloads.managers.queues.capacity_scheduler import CapacityScheduler

FABRIC = clos(hosts=5, gpus_per_host=4, nics_per_host=1, tors=1, aggregations=1, port_rate=1e9, fabric_rate=1e9)
EMPTY = empty_cluster(FABRIC)
LEVELS = {
    "research": {"capacity": 60, "queues": {"vision": {"capacity": 75}, "speech": {"capacity": 25, "most": 50}}},
    "product": {"capacity": 40, "most": 80},
}


def order(queue: CapacityScheduler, *jobs: tuple[str, str, int]) -> list[str]:
    waiting = [Waiting(name, gpus, virtual_cluster=cluster) for name, cluster, gpus in jobs]
    return [entry.job.name for entry in queue.eligible(EMPTY, waiting)]


def refusal(queue: CapacityScheduler, gpus: int, cluster: str) -> str | None:
    return queue.refusal(EMPTY.structure, Waiting("job", gpus, virtual_cluster=cluster))


def test_the_queue_with_the_least_use_over_its_capacity_is_served_first() -> None:
    queue = CapacityScheduler(queues={"a": {"capacity": 75}, "b": {"capacity": 25}})
    jobs = [("a1", "a", 3), ("a2", "a", 3), ("a3", "a", 3), ("b1", "b", 2), ("b2", "b", 2)]
    # Guaranteed are 15 and 5 GPUs: a has 0.2, 0.4, 0.6 of its capacity, b 0.4, 0.8.
    assert order(queue, *jobs) == ["a1", "b1", "a2", "a3", "b2"]


def test_a_queue_uses_what_others_leave_up_to_its_most() -> None:
    queue = CapacityScheduler(queues=LEVELS)
    assert order(queue, *((f"p{n}", "product", 4) for n in range(5))) == ["p0", "p1", "p2", "p3"]
    assert order(queue, *((f"s{n}", "speech", 4) for n in range(5))) == [
        "s0",
        "s1",
    ]  # half of all that research may use


def test_a_job_that_its_queue_could_never_start_is_refused() -> None:
    queue = CapacityScheduler(queues=LEVELS)
    assert refusal(queue, 11, "speech") == "job 'job' asks for 11 GPUs, queue 'research.speech' may use 10 at most"
    assert refusal(queue, 10, "speech") is None
    expected = "expected one of: product, research.speech, research.vision"
    assert refusal(queue, 1, "audio") == f"job 'job': there is no queue 'audio', {expected}"
    assert refusal(queue, 1, "") == f"job 'job': there is no queue 'default', {expected}"


def test_without_queues_there_is_one_for_all() -> None:
    assert order(CapacityScheduler(), ("one", "a", 20), ("two", "", 4)) == ["one"]
    assert refusal(CapacityScheduler(), 20, "anything") is None


@pytest.mark.parametrize(
    ("queues", "said"),
    [
        ({"a": {"capacity": 60}}, "the capacities of the queues at the top add up to 60, expected 100"),
        (
            {"a": {"capacity": 100, "queues": {"b": {"capacity": 30}}}},
            "the capacities of the queues inside 'a' add up to 30, expected 100",
        ),
        ({"a": {"most": 60}}, "queue 'a' has no capacity, expected percent such as 'capacity: 40'"),
        ({"a": {"capacity": 100, "weight": 2}}, "unknown key 'weight', expected capacity, most or queues"),
        ({"a": {"capacity": 100, "most": 50}}, "queue 'a' must have capacity <= most <= 100"),
        ({"a": 100}, "virtual cluster 'a' has 100, expected keys in braces such as {}"),
    ],
)
def test_queues_that_cannot_be_are_refused_in_one_line(queues: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as error:
        CapacityScheduler(queues=queues)
    assert said in str(error.value) and len(str(error.value).splitlines()) == 1
