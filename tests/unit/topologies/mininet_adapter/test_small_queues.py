"""How much of a connection may wait in its own NIC."""

from __future__ import annotations

import pytest

from topologies.mininet_adapter.hosts import NIC_QUEUE_PACKETS, small_queue_bytes


@pytest.mark.parametrize("mtu", [1500, 4500, 9000])
def test_every_connection_has_the_same_number_of_packets_there_whatever_its_rate(mtu: int) -> None:
    """The kernel counts 9,792 bytes for a packet of 9,000, and waits with the next while more than the limit is there.

    Its own limit, which grows with the rate, is two packets and one byte at least: ours has to be below.
    """
    counted = mtu + 792
    assert (NIC_QUEUE_PACKETS - 1) * counted < small_queue_bytes(mtu) < NIC_QUEUE_PACKETS * counted <= 2 * counted
