"""Fair shares: YARN's worked examples, and what must always hold; fair queues of virtual clusters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.clos import clos
from workloads.managers.cluster_state import empty_cluster
from workloads.managers.jobs import Waiting
from workloads.managers.ledger import Ledger
from workloads.managers.queues.fair import Fair
from workloads.managers.queues.fair_share import Share, fair_shares
from workloads.managers.registry import manager

FABRIC = clos(hosts=4, gpus_per_host=4, nics_per_host=1, tors=1, aggregations=1, port_rate=1e9, fabric_rate=1e9)
EMPTY = empty_cluster(FABRIC)


@pytest.mark.parametrize(
    ("first", "expected"),
    [(Share(1), [25, 25, 50]), (Share(1, least=40), [40, 20, 40]), (Share(1, most=10), [10, 30, 60])],
)
def test_yarns_example_of_a_hundred(first: Share, expected: list[int]) -> None:
    assert list(fair_shares(100, {"a": first, "b": Share(1), "c": Share(2)}).values()) == expected


@given(
    total=st.integers(0, 5000),
    shares=st.lists(
        st.tuples(st.floats(0.1, 10), st.integers(0, 50), st.integers(0, 500)).map(
            lambda drawn: Share(drawn[0], float(drawn[1]), float(drawn[1] + drawn[2]))
        ),
        min_size=1,
        max_size=8,
    ),
)
def test_shares_keep_to_their_bounds_and_give_away_all_that_they_can(total: int, shares: list[Share]) -> None:
    queues = {str(place): share for place, share in enumerate(shares)}
    found = fair_shares(total, queues)
    assert all(queues[name].least <= gpus <= queues[name].most for name, gpus in found.items()) or total == 0
    wanted = min(total, sum(share.most for share in shares))
    at_least = max(wanted, 0) if wanted else 0
    assert sum(found.values()) >= at_least - len(shares) * (wanted > 0)


def waiting(*jobs: tuple[str, str, int]) -> list[Waiting]:
    return [Waiting(name, gpus, virtual_cluster=cluster) for name, cluster, gpus in jobs]


def order(queue: Fair, *jobs: tuple[str, str, int]) -> list[str]:
    return [turn.job.name for turn in queue.eligible(empty_cluster(FABRIC), waiting(*jobs))]


def test_virtual_clusters_take_turns_by_weight() -> None:
    jobs = [("a1", "a", 4), ("a2", "a", 4), ("a3", "a", 4), ("b1", "b", 4), ("b2", "b", 4)]
    assert order(Fair(), *jobs) == ["a1", "b1", "a2", "b2", "a3"]
    heavy = Fair(shares={"a": {"weight": 3.0}})
    assert order(heavy, *jobs)[:4] == ["a1", "b1", "a2", "a3"]


def test_a_cluster_below_its_least_share_comes_first_and_none_gets_more_than_its_most() -> None:
    queue = Fair(shares={"b": {"least": 8}, "a": {"most": 4}})
    assert order(queue, ("a1", "a", 4), ("a2", "a", 4), ("b1", "b", 4), ("b2", "b", 4)) == ["b1", "b2", "a1"]


def test_a_share_that_is_wrong_is_refused_in_one_line() -> None:
    with pytest.raises(ValueError, match="unknown key 'wieght', expected weight, least, most or queues"):
        Fair(shares={"a": {"wieght": 1}})
    with pytest.raises(ValueError, match="must have weight > 0 and 0 <= least <= most"):
        Fair(shares={"a": {"least": 5, "most": 4}})
    with pytest.raises(ValueError, match=r"share of virtual cluster 'a\.b': least is 'few', expected a number"):
        Fair(shares={"a": {"queues": {"b": {"least": "few"}}}})
    with pytest.raises(ValueError, match="option 'preemption' of fair must be true or false, not 'yes'"):
        Fair(preemption="yes")  # type: ignore[arg-type]


def refusal(queue: Fair, gpus: int, cluster: str) -> str | None:
    return queue.refusal(EMPTY.structure, Waiting("job", gpus, virtual_cluster=cluster))


def test_a_job_above_the_most_of_its_cluster_is_refused_and_holds_up_nobody() -> None:
    queue = Fair(shares={"a": {"most": 4}})
    assert refusal(queue, 8, "a") == "job 'job' asks for 8 GPUs, virtual cluster 'a' may have 4 at most"
    assert refusal(queue, 4, "a") is None and refusal(queue, 8, "b") is None
    books = Ledger(manager("consolidated", "fair", options={"queue": {"shares": {"a": {"most": 4}}}}), FABRIC)
    assert not books.submit(Waiting("large", 8, virtual_cluster="a"))
    assert books.submit(Waiting("small", 4, virtual_cluster="a"))
    books.decide(0.0)
    assert set(books.state.running) == {"small"} and set(books.refused) == {"large"}


def test_with_backfill_a_job_that_keeps_to_the_most_of_its_cluster_passes_one_that_does_not() -> None:
    jobs = [("a1", "a", 4), ("a2", "a", 4), ("a3", "a", 2)]
    assert order(Fair(shares={"a": {"most": 6}}), *jobs) == ["a1"]
    assert order(Fair(shares={"a": {"most": 6}}, backfill=True), *jobs) == ["a1", "a3"]


RESEARCH = {"research": {"weight": 1, "most": 12, "queues": {"vision": {"weight": 3}, "speech": {}}}, "product": {}}


def test_clusters_inside_a_cluster_divide_its_share() -> None:
    queue = Fair(shares=RESEARCH)
    jobs = [(f"{cluster}{n}", cluster, 1) for cluster in ("vision", "speech", "product") for n in range(8)]
    served = order(queue, *jobs)[:16]
    assert {name: sum(job.startswith(name) for job in served) for name in ("product", "vision", "speech")} == {
        "product": 8,
        "vision": 6,
        "speech": 2,
    }


def test_the_most_of_a_cluster_bounds_all_clusters_inside_it() -> None:
    queue = Fair(shares=RESEARCH)
    assert order(queue, ("v", "vision", 8), ("s", "research.speech", 8)) == ["s"]
    assert refusal(queue, 13, "vision") == "job 'job' asks for 13 GPUs, virtual cluster 'research' may have 12 at most"
    assert refusal(queue, 1, "research") == (
        "job 'job': virtual cluster 'research' has others inside, expected one of: research.vision, research.speech"
    )


def busy(preemption: bool, sizes: tuple[int, ...] = (8, 4, 4), least: int = 0) -> Ledger:
    """Jobs of cluster a on the GPUs, in order; then one of 8 GPUs of cluster b, whose fair share that is."""
    options = {"queue": {"preemption": preemption, "shares": {"b": {"least": least}}}}
    books = Ledger(manager("consolidated", "fair", options=options), FABRIC)
    for number, gpus in enumerate(sizes):
        books.submit(Waiting(f"a{number}", gpus, virtual_cluster="a"))
        books.decide(float(number))
    books.submit(Waiting("b", 8, virtual_cluster="b"))
    books.decide(10.0)
    return books


def test_preemption_is_off_unless_asked_for() -> None:
    assert set(busy(preemption=False).state.running) == {"a0", "a1", "a2"}


def test_preemption_restores_the_fair_share_and_takes_the_last_to_start_first() -> None:
    books = busy(preemption=True)
    assert set(books.state.running) == {"a0", "b"}
    assert [job.name for job in books.waiting] == ["a1", "a2"]


def test_nobody_is_preempted_below_their_fair_share_nor_while_a_fifth_of_the_gpus_is_free() -> None:
    assert set(busy(preemption=True, sizes=(12, 4)).state.running) == {"a0", "a1"}  # without a0 its cluster has 4 of 8
    assert set(busy(preemption=True, sizes=(4, 4, 4)).state.running) == {"a0", "a1", "a2"}


NESTED = {"p": {"weight": 2, "queues": {"x": {}, "y": {}}}, "q": {}, "r": {}}


def nested(*jobs: tuple[str, str, int]) -> Ledger:
    """Jobs on a fabric of 8 GPUs, one after the other, in clusters of which p has x and y inside and a share of 4."""
    options = {"queue": {"preemption": True, "preempt_above": 0.5, "shares": NESTED}}
    fabric = clos(hosts=1, gpus_per_host=8, nics_per_host=1, tors=1, aggregations=1, port_rate=1e9, fabric_rate=1e9)
    books = Ledger(manager("none", "fair", options=options), fabric)
    for number, (name, cluster, gpus) in enumerate(jobs):
        books.submit(Waiting(name, gpus, virtual_cluster=cluster))
        books.decide(float(number))
    return books


OF_R = [(f"r{number}", "r", 1) for number in range(4)]


def test_nobody_is_preempted_whose_cluster_lies_in_one_below_its_fair_share() -> None:
    of_x = [(f"x{number}", "x", 1) for number in range(3)]
    # p has 3 of its 4, r 4 of its 2; y waits, so that the share of x in p is 2.
    books = nested(*OF_R, ("q0", "q", 1), *of_x, ("y0", "y", 7), ("q1", "q", 1))
    assert set(books.state.running) == {"r0", "r1", "r2", "q0", "q1", "x0", "x1", "x2"}


def test_inside_a_cluster_at_its_fair_share_one_makes_way_for_another() -> None:
    of_x = [(f"x{number}", "x", 1) for number in range(4)]
    books = nested(*of_x, *OF_R[:2], ("q0", "q", 2), ("y0", "y", 1))
    assert set(books.state.running) == {"x0", "x1", "x2", "y0", "r0", "r1", "q0"}


def test_a_job_that_its_parent_needs_does_not_use_up_what_its_cluster_can_spare() -> None:
    shares = {"p": {"queues": {"x": {}, "y": {}}}, "r": {}}
    books = Ledger(manager("none", "fair", options={"queue": {"preemption": True, "shares": shares}}), FABRIC)
    jobs = [("r0", "r", 6), ("xa", "x", 2), ("xb", "x", 2), ("xc", "x", 4), ("y0", "y", 2), ("r1", "r", 2)]
    for number, (name, cluster, gpus) in enumerate(jobs):
        books.submit(Waiting(name, gpus, virtual_cluster=cluster))
        books.decide(float(number))
    # p has 10 of its 8 GPUs and x 8 of its 4: p cannot spare the 4 GPUs of xc, but the 2 of xb
    assert set(books.state.running) == {"r0", "r1", "xa", "xc", "y0"}
