"""What holds under every manager, on random traces: no GPU twice, exactly its work, nobody waits forever.

Without a network, so that it is quick; ``python -m benchmarks.manager_properties`` checks the same in replays, by jump
and by exact stepping.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks.manager_audit import Books, books_of, waiting_forever, watched
from benchmarks.manager_cases import CASES, RandomJob, random_trace
from topologies.clos import clos
from workloads.managers.account import JobOutcome
from workloads.managers.actions import Pack, Preempt, Start
from workloads.managers.durations import Play
from workloads.managers.jobs import Waiting
from workloads.managers.manager import Manager
from workloads.managers.registry import manager, names

FABRIC = clos(hosts=4, gpus_per_host=4, nics_per_host=1, tors=2, aggregations=1, port_rate=1e9, fabric_rate=1e9)
TRACES = 20
COMPUTE_S, COMMUNICATION_S = 1.0, 0.4
SHARED = {0: 1.0, 1: (COMPUTE_S + COMMUNICATION_S) / (2 * COMPUTE_S)}
"""Jobs on the same GPUs -> speed: of two like jobs one computes, while the other sends and then waits for the GPUs."""


def asked(job: RandomJob) -> Waiting:
    least, most = job.elastic or (None, None)
    return Waiting(
        job.name,
        job.gpus,
        job.submit_s,
        job.duration_s,
        remaining_s=job.duration_s,
        compute_s=COMPUTE_S,
        communication_s=COMMUNICATION_S,
        virtual_cluster=job.virtual_cluster,
        min_gpus=least,
        max_gpus=most,
        opportunistic=job.opportunistic,
    )


def played(whole: Manager, trace: Sequence[RandomJob]) -> tuple[Books, dict[str, JobOutcome], dict[str, str]]:
    """The books, the outcomes by name, and the refused jobs."""
    seen = watched(whole)
    play = Play(seen, FABRIC, map(asked, trace))
    outcomes = play.run()
    return books_of(seen.seen, outcomes), {each.name: each for each in outcomes}, dict(play.refused)


def work_of(books: Books, job: RandomJob) -> float:
    """Seconds of the job on the GPUs that it asked for, as its stretches add up; two on the same GPUs interleave."""
    mine = (each for each in books.stretches if each.job == job.name)
    return sum((each.to_s - each.from_s) * len(each.gpus) / job.gpus * SHARED[len(each.mates)] for each in mine)


def assert_properties(whole: Manager, trace: Sequence[RandomJob], may_deadlock: bool = False) -> None:
    books, outcomes, refused = played(whole, trace)
    assert books.problems == []
    waiting = waiting_forever(outcomes.values(), outcomes, refused)
    assert waiting == [] or (may_deadlock and sum(outcomes[name].holds > 0 for name in waiting) >= 2)
    for job in trace:
        outcome = outcomes[job.name]
        if outcome.end_s is None:
            continue
        assert work_of(books, job) == pytest.approx(job.duration_s, rel=1e-6), job
        if not any(len(each.gpus) > job.gpus for each in books.stretches if each.job == job.name):
            assert outcome.held_s >= job.duration_s * (1 - 1e-9)


@pytest.mark.parametrize("name", CASES)
def test_no_gpu_twice_exactly_its_work_and_nobody_waits_forever(name: str) -> None:
    for seed in range(TRACES):
        assert_properties(CASES[name].manager(seed), random_trace(seed), CASES[name].may_deadlock)


@pytest.mark.parametrize("queue", names("queue"))
@pytest.mark.parametrize("policy", names("policy"))
def test_the_same_for_every_policy_with_every_queue(policy: str, queue: str) -> None:
    for seed in (101, 102):
        whole = manager("locality", queue, policy, seed=seed)
        assert_properties(whole, random_trace(seed), may_deadlock=policy == "kubernetes")


def test_a_gpu_that_is_given_twice_is_found() -> None:
    one, two = (Start(Waiting(name, 2), ("h0g0", "h0g1"), 1.0, "") for name in ("one", "two"))
    assert books_of([one, two], ()).problems == ["two gets GPUs of one at 1 s"]
    assert books_of([one, Preempt("one", 2.0, ""), two], ()).problems == []
    assert books_of([one, Pack((one.asked, two.asked), one.gpus, 2.0, "")], ()).problems == []


def test_a_job_that_nobody_starts_waits_forever() -> None:
    assert waiting_forever((), ["one", "two"], {"two": "too large"}) == ["one"]
