"""Allreduces by two trees of hosts: their shape, their bytes, and when NCCL takes them."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies.clos import clos
from workloads.communication.collectives import Message, expand
from workloads.communication.double_tree import deepest_children, depths, double_tree
from workloads.communication.layout import layout_of
from workloads.communication.nccl_tuner import RankGroup, allreduce_algorithm

SIZE = 1e9


def test_the_trees_are_those_of_nccl() -> None:
    even, _ = double_tree(12)
    assert even == (None, 2, 4, 2, 8, 6, 4, 6, 0, 10, 8, 10)
    assert double_tree(12)[1] == tuple(None if up is None else 11 - up for up in reversed(even))
    odd, shifted = double_tree(13)
    assert odd == (None, 2, 4, 2, 8, 6, 4, 6, 0, 10, 12, 10, 8)
    assert shifted == tuple(None if up is None else (up + 1) % 13 for up in (odd[-1], *odd[:-1]))


@given(st.integers(2, 200))
def test_each_tree_reaches_every_host_and_none_has_more_than_two_children(hosts: int) -> None:
    for parents in double_tree(hosts):
        assert parents.count(None) == 1
        assert max(Counter(up for up in parents if up is not None).values()) <= 2
        assert max(depths(parents)) <= hosts.bit_length()
    inner = [{up for up in parents if up is not None} for parents in double_tree(hosts)]
    assert len(inner[0] & inner[1]) <= 2, "the inner hosts of one tree are leaves of the other, but for its ends"


@given(st.integers(2, 60))
def test_the_deepest_child_is_one_of_the_children(hosts: int) -> None:
    parents, _ = double_tree(hosts)
    for host, child in enumerate(deepest_children(parents)):
        children = [each for each, up in enumerate(parents) if up == host]
        assert child in children if children else child is None


def tree(hosts: int) -> tuple[Message, ...]:
    fabric = clos(
        hosts=hosts, gpus_per_host=2, nics_per_host=2, tors=2, aggregations=2, port_rate=1e11, fabric_rate=1e11
    )
    return expand("tree", layout_of(fabric.gpus, fabric), SIZE)


@pytest.mark.parametrize("hosts", [2, 4, 6, 8, 14])
def test_half_of_a_rails_share_goes_up_and_down_each_tree(hosts: int) -> None:
    found = tree(hosts)
    assert len(found) == 2 * 2 * 2 * (hosts - 1)
    assert {message.bytes for message in found} == {SIZE / 2 / 2}
    sent: dict[str, float] = defaultdict(float)
    for message in found:
        sent[message.channel.source] += message.bytes
    assert max(sent.values()) <= 2 * SIZE / 2
    assert sum(sent.values()) == pytest.approx(2 * 2 * (hosts - 1) * SIZE / 2)


@pytest.mark.parametrize("hosts", [2, 6, 14])
def test_what_is_forwarded_has_arrived_where_it_is_forwarded(hosts: int) -> None:
    by_channel = {message.channel: message for message in tree(hosts)}
    followers = Counter(message.after for message in by_channel.values() if message.after is not None)
    assert max(followers.values()) <= 2
    port_of = {channel.source: channel.source.partition("n")[0] for channel in by_channel}
    for message in by_channel.values():
        if message.after is not None:
            assert message.after in by_channel and message.lead > 0
            assert port_of[message.channel.source] == port_of[message.after.target]
        walked, seen = message, 0
        while walked.after is not None:
            walked, seen = by_channel[walked.after], seen + 1
            assert seen < 2 * hosts, "a circle"


HOST = 8 * 400e9


@pytest.mark.parametrize(
    ("size", "hosts", "expected"),
    [
        (64e6, 2, "ring"),
        (80e6, 16, "ring"),
        (80e6, 128, "tree"),
        (16e9, 128, "ring"),
    ],
)
def test_trees_are_for_many_hosts_and_rings_for_many_bytes(size: float, hosts: int, expected: str) -> None:
    one_rank_per_host = RankGroup(hosts, hosts, HOST / 8)
    assert allreduce_algorithm(size, one_rank_per_host) == expected


@given(st.floats(1e6, 1e11), st.integers(2, 2000), st.sampled_from([1, 4, 8]))
def test_more_bytes_never_lead_from_a_ring_to_a_tree(size: float, hosts: int, each: int) -> None:
    group = RankGroup(each * hosts, hosts, each * 400e9)
    if size > 5e8 and allreduce_algorithm(size, group) == "ring":  # below, shares of the bandwidth go up and down
        assert allreduce_algorithm(2 * size, group) == "ring"
