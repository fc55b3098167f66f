"""TCP ports are unique where connections could be mistaken, and run out with a reason."""

from __future__ import annotations

import pytest

from workloads import connections
from workloads.connections import PortBook


def test_thousands_of_connections_of_one_port_have_different_source_ports() -> None:
    book = PortBook(1)
    assert len({book.source_port(f"flow-{index}", "h0n0p0") for index in range(3000)}) == 3000


def test_another_nic_port_may_use_the_same_source_port() -> None:
    book = PortBook(1)
    assert book.source_port("flow", "h0n0p0") == book.source_port("flow", "h1n0p0")


def test_listening_ports_count_up_per_address() -> None:
    book = PortBook(1)
    assert [book.target_port(port) for port in ("h0n0p0", "h0n0p0", "h1n0p0")] == [5000, 5001, 5000]


def test_a_port_without_free_numbers_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SOURCE_PORTS", 2)
    book = PortBook(1)
    assert {book.source_port(flow, "h0n0p0") for flow in "ab"} == {20000, 20001}
    with pytest.raises(ValueError, match="h0n0p0 has no TCP source port left"):
        book.source_port("c", "h0n0p0")
