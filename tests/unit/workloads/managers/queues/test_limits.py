"""What a queue may have at most holds for jobs that grow, too; and a queue preempts only where its policy lets it."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies.clos import clos
from workloads.managers.cluster_state import ClusterState
from workloads.managers.durations import Play
from workloads.managers.jobs import Waiting
from workloads.managers.ledger import Ledger
from workloads.managers.policies.optimus import Optimus
from workloads.managers.registry import manager, names
from workloads.plugins import Options

FABRIC = clos(hosts=2, gpus_per_host=8, nics_per_host=1, tors=1, aggregations=1, port_rate=1e9, fabric_rate=1e9)
MOST = 6
QUEUES: dict[str, Options] = {
    "fair": {"shares": {"a": {"most": MOST}}},
    "capacity-scheduler": {"queues": {"a": {"capacity": 30, "most": 37.5}, "b": {"capacity": 70}}},
}
GROWING = ("gandiva", "grow-shrink", "lyra", "optimus")
LET_QUEUES_PREEMPT = ("gang", "grow-shrink", "guarantee", "monkeytree", "philly")


def job(name: str, gpus: int, submit_s: float = 0.0, seconds: float = 4000.0, cluster: str = "a") -> Waiting:
    """An elastic job, from half its size to four times as much."""
    least, most = max(1, gpus // 2), min(16, 4 * gpus)
    return Waiting(
        name, gpus, submit_s, seconds, remaining_s=seconds, virtual_cluster=cluster, min_gpus=least, max_gpus=most
    )


def most_used(queue: str, policy: str, jobs: list[Waiting]) -> int:
    """The most GPUs that the jobs of cluster a had at a time; all of them end."""
    used: list[int] = []

    def watch(_from_s: float, _to_s: float, state: ClusterState) -> None:
        used.append(sum(len(each.gpus) for each in state.running.values() if each.job.virtual_cluster == "a"))

    play = Play(manager("consolidated", queue, policy, options={"queue": QUEUES[queue]}), FABRIC, jobs)
    assert all(each.end_s is not None for each in play.run(watch)) and not play.refused
    return max(used)


@pytest.mark.parametrize("queue", QUEUES)
@pytest.mark.parametrize("policy", GROWING)
def test_an_elastic_job_grows_to_what_its_queue_may_have_and_no_further(policy: str, queue: str) -> None:
    assert most_used(queue, policy, [job("elastic", 4), job("other", 2, 10.0, 500.0, "b")]) == MOST


JOBS = st.lists(
    st.tuples(st.integers(1, MOST), st.integers(0, 3000), st.integers(1, 3000), st.sampled_from("ab")),
    min_size=1,
    max_size=8,
)


@settings(max_examples=60, deadline=None)
@given(drawn=JOBS, policy=st.sampled_from(GROWING), queue=st.sampled_from(sorted(QUEUES)))
def test_no_queue_ever_has_more_than_its_most(drawn: list[tuple[int, int, int, str]], policy: str, queue: str) -> None:
    jobs = [
        job(f"job{number}", gpus, float(submit_s), float(seconds), cluster)
        for number, (gpus, submit_s, seconds, cluster) in enumerate(drawn)
    ]
    assert most_used(queue, policy, jobs) <= MOST


def test_a_job_that_optimus_cannot_let_grow_is_left_alone() -> None:
    options = {"queue": QUEUES["fair"], "policy": {"restart_s": 30.0}}
    alone = Play(manager("consolidated", "fair", "optimus", options=options), FABRIC, [job("elastic", 6)])
    (outcome,) = alone.run()
    assert outcome.migrations == outcome.preemptions == 0 and outcome.end_s == pytest.approx(4000.0)


def test_optimus_gives_to_others_what_a_queue_may_not_have() -> None:
    jobs = [job("first", 2), job("second", 2), job("other", 2, cluster="b")]
    limits = {"first": {"a": 5.0}, "second": {"a": 5.0}}
    counts = Optimus().allocate(jobs, 16, 0.0, limits)
    assert counts["first"] + counts["second"] == 5 and counts["other"] == 8


@pytest.mark.parametrize("policy", names("policy"))
def test_a_queue_preempts_or_is_refused_with_a_policy_that_does_not_let_it(policy: str) -> None:
    preempting = manager("consolidated", "fair", policy, options={"queue": {"preemption": True, "backfill": True}})
    if policy not in LET_QUEUES_PREEMPT:
        with pytest.raises(ValueError, match=f"queue 'fair' cannot preempt under policy '{policy}', which"):
            Ledger(preempting, FABRIC)
        Ledger(manager("consolidated", "fair", policy), FABRIC)
        return
    books = Ledger(preempting, FABRIC)
    for number, gpus in enumerate((8, 4, 4)):
        books.submit(Waiting(f"a{number}", gpus, virtual_cluster="a"))
        books.decide(float(number))
    books.submit(Waiting("b", 8, virtual_cluster="b"))
    books.decide(10.0)
    assert set(books.state.running) == {"a0", "b"}


def test_a_job_that_has_all_its_queue_may_have_wakes_no_manager() -> None:
    books = Ledger(manager("consolidated", "fair", "grow-shrink", options={"queue": QUEUES["fair"]}), FABRIC)
    books.submit(job("elastic", 4))
    for now_s in (0.0, 60.0, 120.0):
        books.decide(now_s, lambda _: 4000.0)
    assert len(books.state.running["elastic"].gpus) == MOST
    assert books.next_s() == inf
