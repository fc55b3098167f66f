"""Jobs that hold some of their GPUs and wait for the rest: Kubernetes's pods, Philly's gangs."""

from __future__ import annotations

import pytest

from topologies.clos import clos
from workloads.managers.account import JobOutcome
from workloads.managers.actions import Ask, Requeue, Resize, Start
from workloads.managers.durations import Play
from workloads.managers.jobs import Waiting
from workloads.managers.ledger import Ledger
from workloads.managers.registry import create, manager

FABRIC = clos(hosts=2, gpus_per_host=8, nics_per_host=1, tors=1, aggregations=1, port_rate=1e9, fabric_rate=1e9)


def job(name: str, gpus: int, duration_s: float = 10.0, submit_s: float = 0.0) -> Waiting:
    return Waiting(name, gpus, submit_s, duration_s, remaining_s=duration_s)


def pods(*jobs: Waiting, **options: object) -> dict[str, JobOutcome]:
    play = Play(manager("none", policy="kubernetes", options={"policy": options}), FABRIC, jobs)
    return {each.name: each for each in play.run()}


def test_free_gpus_go_to_the_oldest_pods_so_jobs_that_come_one_after_another_all_run() -> None:
    done = pods(job("one", 12), job("two", 12, submit_s=1.0), job("three", 12, submit_s=2.0))
    assert [done[name].end_s for name in ("one", "two", "three")] == [10.0, 20.0, 30.0]


def test_jobs_that_come_together_take_turns_and_each_holds_what_the_other_needs() -> None:
    done = pods(job("one", 12), job("two", 12))
    assert [(each.end_s, each.holds) for each in done.values()] == [(None, 8), (None, 8)]
    assert pods(job("one", 12), job("two", 12), create_s=0.0)["two"].end_s == 20.0  # all pods of a job at once


def test_a_job_that_has_held_a_part_for_long_gives_it_back_and_the_oldest_gets_on() -> None:
    done = pods(job("one", 12), job("two", 12), release_s=60.0, back_off_s=5.0)
    assert [(each.start_s, each.end_s) for each in done.values()] == [(60.0, 70.0), (70.0, 80.0)]
    assert all((each.preemptions, each.migrations, each.holds) == (0, 0, 0) for each in done.values())
    assert done["two"].held_s == 10.0 and done["two"].allocated_gpu_s > 12 * 10.0


def test_a_pod_that_was_created_again_is_younger_than_those_that_came_in_between() -> None:
    done = pods(job("one", 12, 100.0), job("two", 12), job("three", 8, 10.0, 61.0), release_s=60.0, back_off_s=5.0)
    assert done["one"].start_s == 60.0
    assert (done["three"].start_s, done["two"].start_s) == (160.0, 170.0)


def philly(**options: object) -> Ledger:
    parts = {"policy": {"wait_s": 30.0, "back_off_s": 20.0, **options}, "placer": {"tries": 2}}
    return Ledger(manager("locality", policy="philly", options=parts), FABRIC)


def philly_with_a_gang_that_holds() -> Ledger:
    """Two jobs of five GPUs, a host each, and a gang of 8 that has held the three of one host since second 1."""
    books = philly()
    for name in ("left", "right"):
        books.submit(job(name, 5))
    books.decide(0.0)
    books.submit(job("gang", 8))
    books.decide(1.0)
    return books


def test_a_gang_holds_what_there_is_of_a_local_place_and_starts_when_it_has_the_rest() -> None:
    books = philly()
    for name in ("left", "right", "rest"):
        books.submit(job(name, 5 if name != "rest" else 1))
    books.decide(0.0)
    books.submit(job("gang", 8))
    (part,) = books.decide(1.0)
    assert isinstance(part, Start) and len(part.gpus) == 3 and books.state.running["gang"].holding
    books.end("right", 7.0)
    (more,) = books.decide(7.0)
    assert isinstance(more, Resize) and len({gpu[:2] for gpu in more.gpus}) == 1
    assert not books.state.running["gang"].holding or len(more.gpus) < 8


def test_a_gang_gives_back_what_it_holds_when_its_time_is_over_and_asks_again_after_its_back_off() -> None:
    books = philly_with_a_gang_that_holds()
    assert (books.state.free_gpus, books.next_s()) == (3, 31.0)
    (back,) = books.decide(31.0)
    assert back == Requeue("gang", 51.0, 31.0, "no local place")
    assert (books.state.free_gpus, books.next_s(), books.waiting[0].tries) == (6, 51.0, 1)
    books.decide(51.0)
    assert books.state.running["gang"].holding and books.next_s() == 81.0
    assert books.waits("gang") == {"fragmentation": 0.0} or sum(books.waits("gang").values()) == pytest.approx(50.0)


def test_a_gang_that_backs_off_asks_for_nothing_even_if_its_whole_place_is_free() -> None:
    books = philly_with_a_gang_that_holds()
    books.decide(31.0)
    books.end("left", 40.0)
    assert books.decide(40.0) == [] and books.next_s() == 51.0
    (start,) = books.decide(51.0)
    assert isinstance(start, Start) and start.pause_s == 0.0


def test_a_gang_that_holds_nothing_asks_whenever_gpus_free_up() -> None:
    books = philly()
    books.submit(job("all", 16))
    books.decide(0.0)
    books.submit(job("gang", 8))
    assert [type(action) for action in books.decide(1.0)] == [Ask]
    books.end("all", 20.0)
    (start,) = books.decide(20.0)
    assert isinstance(start, Start) and start.pause_s == 0.0 and books.waiting == ()


def test_drf_is_max_min_fairness_where_there_is_one_resource_and_the_refusal_says_so() -> None:
    for point in ("queue", "policy"):
        with pytest.raises(ValueError, match="dominant resource fairness of one resource is max-min fairness"):
            create(point, "drf")
