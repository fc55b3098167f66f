"""TCP ports are unique where connections could be mistaken, run out with a reason, and know no names."""

from __future__ import annotations

import pytest

from topologies.clos import clos
from workloads import connections
from workloads.connections import PortBook

FABRIC = clos(hosts=4, gpus_per_host=4, nics_per_host=2, tors=2, aggregations=2, port_rate=1e11, fabric_rate=1e11)


def test_thousands_of_connections_of_one_port_have_different_source_ports() -> None:
    book = PortBook(1, FABRIC)
    assert len({book.source_port("h0n0p0", "h1n0p0") for _ in range(3000)}) == 3000


def test_another_nic_port_may_use_the_same_source_port() -> None:
    book = PortBook(1, FABRIC)
    assert book.source_port_by("flow", "h0n0p0") == book.source_port_by("flow", "h1n0p0")


def test_a_pair_of_ports_draws_the_same_whatever_was_drawn_for_other_pairs() -> None:
    alone, beside = PortBook(1, FABRIC), PortBook(1, FABRIC)
    beside.source_port("h1n0p0", "h2n0p0")
    assert alone.source_port("h0n0p0", "h3n0p0") == beside.source_port("h0n0p0", "h3n0p0")


def test_the_next_job_on_a_gpu_draws_anew() -> None:
    book = PortBook(1, FABRIC)
    first, second, third = book.draws(["h0g0", "h1g0"]), book.draws(["h1g0"]), book.draws(["h2g0"])
    assert len({*first, *second, *third}) == 4
    assert PortBook(1, FABRIC).draws(["h2g0"]) == third


def test_listening_ports_count_up_per_address() -> None:
    book = PortBook(1, FABRIC)
    assert [book.target_port(port) for port in ("h0n0p0", "h0n0p0", "h1n0p0")] == [5000, 5001, 5000]


def test_a_port_without_free_numbers_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SOURCE_PORTS", 2)
    book = PortBook(1, FABRIC)
    assert {book.source_port("h0n0p0", "h1n0p0") for _ in "ab"} == {20000, 20001}
    with pytest.raises(ValueError, match="h0n0p0 has no TCP source port left"):
        book.source_port("h0n0p0", "h1n0p0")
