"""Why jobs wait: the books say for how long it was a quota, a full cluster, or free GPUs in the wrong places."""

from __future__ import annotations

import pytest

from topologies.clos import clos
from workloads.managers.jobs import Waiting
from workloads.managers.ledger import CAUSES, Ledger
from workloads.managers.registry import manager

FABRIC = clos(hosts=2, gpus_per_host=8, nics_per_host=1, tors=1, aggregations=1, port_rate=100e9, fabric_rate=100e9)


def test_a_full_cluster_is_a_lack_of_capacity() -> None:
    books = Ledger(manager("consolidated"), FABRIC)
    books.submit(Waiting("first", 16))
    books.decide(0.0)
    books.submit(Waiting("second", 4))
    books.decide(10.0)
    books.end("first", 25.0)
    books.decide(25.0)
    assert books.waits("second") == {"capacity": 15.0}
    assert books.waits("first") == {}


def test_what_the_most_of_a_virtual_cluster_holds_back_waits_for_its_share() -> None:
    options = {"queue": {"shares": {"vision": {"most": 8}, "speech": {}}}}
    books = Ledger(manager("consolidated", queue="fair", options=options), FABRIC)
    books.submit(Waiting("one", 8, virtual_cluster="vision"))
    books.submit(Waiting("two", 8, virtual_cluster="vision"))
    books.decide(0.0)
    books.submit(Waiting("three", 2, virtual_cluster="speech"))
    books.decide(7.0)
    assert books.waits("two") == {"share": 7.0}
    assert set(books.state.running) == {"one", "three"}


def test_free_gpus_in_the_wrong_places_are_fragmentation_while_a_job_backs_off_too() -> None:
    policy = {"policy": {"wait_s": 30.0, "back_off_s": 20.0}, "placer": {"tries": 100}}
    books = Ledger(manager("locality", queue="fair", policy="philly", options=policy), FABRIC)
    for name in ("left", "right"):
        books.submit(Waiting(name, 5))  # three GPUs stay free on each host
    books.decide(0.0)
    books.submit(Waiting("six", 6))
    now_s = 0.0
    while now_s < 100.0:
        books.decide(now_s)
        now_s = min(books.next_s(), 100.0)
    books.decide(100.0)
    assert books.waits("six") == {"fragmentation": pytest.approx(100.0)}
    assert set(books.waits("six")) <= set(CAUSES)
