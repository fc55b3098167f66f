"""Collectives send exactly their bytes, and their dependencies let a ring run and nothing overtake it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from parameter_server import server_egress

from topologies.clos import clos96
from topologies.double_sided import double_sided
from topologies.fabric import Fabric
from topologies.generators.hpn import hpn
from topologies.generators.rail_optimized import rail_optimized
from workloads.communication.collectives import COLLECTIVES, Channel, Message, collective_named, expand
from workloads.communication.layout import layout_of

FABRICS = {
    "bonded": clos96(),
    "ports": clos96(bonded=False),
    "double-sided": double_sided(hosts=12, tors=4, aggregations=2, cores=2),
    "rail-optimized": rail_optimized(hosts=12, nics_per_host=4, segments=2, aggregations=2),
    "hpn": hpn(hosts=12, nics_per_host=4, segments=2, aggregations=2),
}
RINGS = ("hierarchical", "ring", "scattered-ring", "reduce-scatter", "all-gather")
SIZE = 12e9

fabrics = st.sampled_from(sorted(FABRICS))
gpu_sets = st.sets(st.integers(0, 95), min_size=1, max_size=96).map(sorted)


def even(hosts: int, per_host: int) -> tuple[str, ...]:
    return tuple(f"h{host}g{gpu}" for host in range(hosts) for gpu in range(per_host))


def messages(collective: str, gpus: Sequence[str], fabric: Fabric, size: float = SIZE) -> tuple[Message, ...]:
    return expand(collective, layout_of(gpus, fabric), size)


def sent_by_nic(found: Sequence[Message], fabric: Fabric) -> dict[str, float]:
    total: dict[str, float] = defaultdict(float)
    for message in found:
        total[fabric.ports[message.channel.source].nic] += message.bytes
    return total


def received_by_nic(found: Sequence[Message], fabric: Fabric) -> dict[str, float]:
    total: dict[str, float] = defaultdict(float)
    for message in found:
        total[fabric.ports[message.channel.target].nic] += message.bytes
    return total


@pytest.mark.parametrize("fabric_name", FABRICS)
@pytest.mark.parametrize("collective", ["hierarchical", "reduce-scatter", "all-gather", "alltoall"])
@pytest.mark.parametrize("hosts", [2, 3, 6, 12])
def test_every_nic_sends_and_receives_the_bus_factor_of_its_rail(fabric_name: str, collective: str, hosts: int) -> None:
    fabric = FABRICS[fabric_name]
    found = messages(collective, even(hosts, 8), fabric)
    gpus_behind = 8 if collective == "alltoall" else 1
    expected = collective_named(collective).bus_factor(hosts) * SIZE / 4 * gpus_behind
    for totals in (sent_by_nic(found, fabric), received_by_nic(found, fabric)):
        assert len(totals) == 4 * hosts
        assert list(totals.values()) == pytest.approx([expected] * 4 * hosts)


@pytest.mark.parametrize(("hosts", "per_host"), [(2, 2), (3, 4), (6, 8)])
def test_a_flat_ring_carries_the_bus_factor_of_all_its_nics_through_one_nic_of_each_host(
    hosts: int, per_host: int
) -> None:
    fabric = FABRICS["bonded"]
    sent = sent_by_nic(messages("ring", even(hosts, per_host), fabric), fabric)
    nics = hosts * per_host // 2
    assert list(sent.values()) == pytest.approx([2 * (nics - 1) / nics * SIZE] * hosts)


def test_in_a_scattered_ring_gpus_that_share_a_nic_share_its_rate() -> None:
    fabric = FABRICS["bonded"]  # two GPUs at a NIC
    two_by_two = sent_by_nic(messages("scattered-ring", even(2, 2), fabric), fabric)
    four_alone = sent_by_nic(messages("scattered-ring", even(4, 1), fabric), fabric)
    assert list(two_by_two.values()) == pytest.approx([2 * 1.5 * SIZE] * 2)
    assert list(four_alone.values()) == pytest.approx([1.5 * SIZE] * 4)


@given(fabrics, gpu_sets)
def test_a_scattered_ring_is_one_ring_through_every_gpu(name: str, chosen: list[int]) -> None:
    fabric = FABRICS[name]
    gpus = [fabric.gpus[index] for index in chosen]
    found = messages("scattered-ring", gpus, fabric)
    leads = sum(message.lead for message in found)
    if found:
        assert leads == pytest.approx(SIZE)  # every GPU's own chunk is sent first, once
        follows = {message.channel: message.after for message in found}
        assert len(set(follows.values())) == len(found) and set(follows.values()) == set(follows)


@given(fabrics, gpu_sets)
def test_parameter_servers_send_what_the_formula_of_tiresias_says(name: str, chosen: list[int]) -> None:
    fabric = FABRICS[name]
    gpus = [fabric.gpus[index] for index in chosen]
    layout, sent = layout_of(gpus, fabric), sent_by_nic(messages("parameter-server", gpus, fabric), fabric)
    for share in layout.shares if len(layout.shares) > 1 else ():
        mine = sum(size for nic, size in sent.items() if fabric.nics[nic].host == share.host)
        shards = SIZE * share.gpus / layout.gpus
        assert mine == pytest.approx(server_egress(SIZE, shards, layout.gpus, share.gpus))


def test_pipeline_stages_send_to_the_next_host_and_the_last_to_none() -> None:
    fabric = FABRICS["bonded"]
    found = messages("point-to-point", even(3, 8), fabric, 1e6)
    pairs = {(fabric.ports[m.channel.source].host, fabric.ports[m.channel.target].host) for m in found}
    assert pairs == {("h0", "h1"), ("h1", "h2")}
    assert sum(message.bytes for message in found) == pytest.approx(2 * 8 * 1e6)


@given(fabrics, gpu_sets, st.floats(1, 1e12))
def test_an_allreduce_is_a_reduce_scatter_and_an_all_gather(name: str, chosen: list[int], size: float) -> None:
    fabric = FABRICS[name]
    gpus = [fabric.gpus[index] for index in chosen]
    whole, first, second = (
        sum(m.bytes for m in messages(collective, gpus, fabric, size))
        for collective in ("hierarchical", "reduce-scatter", "all-gather")
    )
    assert whole == pytest.approx(first + second)


@given(fabrics, gpu_sets, st.floats(1, 1e12))
def test_an_all_to_all_brings_every_byte_for_another_host_there(name: str, chosen: list[int], size: float) -> None:
    fabric = FABRICS[name]
    gpus = [fabric.gpus[index] for index in chosen]
    layout = layout_of(gpus, fabric)
    sent: dict[str, float] = defaultdict(float)
    received: dict[str, float] = defaultdict(float)
    for message in messages("alltoall", gpus, fabric, size):
        sent[fabric.ports[message.channel.source].host] += message.bytes
        received[fabric.ports[message.channel.target].host] += message.bytes
    for share in layout.shares:
        foreign = size * share.gpus * (layout.gpus - share.gpus) / layout.gpus
        assert sent[share.host] == pytest.approx(foreign)
        assert received[share.host] == pytest.approx(foreign)


@given(fabrics, gpu_sets, st.sampled_from(sorted(COLLECTIVES)))
def test_a_channel_carries_one_message_between_two_hosts_and_keeps_its_side(
    name: str, chosen: list[int], collective: str
) -> None:
    fabric = FABRICS[name]
    found = messages(collective, [fabric.gpus[index] for index in chosen], fabric)
    assert len({message.channel for message in found}) == len(found)
    for message in found:
        source, target = fabric.ports[message.channel.source], fabric.ports[message.channel.target]
        assert source.host != target.host
        sides = [fabric.nics[port.nic].ports.index(port.name) for port in (source, target)]
        assert sides[0] == sides[1]


@given(fabrics, gpu_sets, st.sampled_from(RINGS))
def test_a_ring_message_follows_what_arrives_at_its_sender(name: str, chosen: list[int], collective: str) -> None:
    fabric = FABRICS[name]
    found = messages(collective, [fabric.gpus[index] for index in chosen], fabric)
    by_channel = {message.channel: message for message in found}
    for message in found:
        assert message.after is not None
        arriving = by_channel[message.after]
        assert fabric.ports[arriving.channel.target].host == fabric.ports[message.channel.source].host
        assert 0 < message.lead <= message.bytes * (1 + 1e-9)
        assert message.bytes - message.lead <= arriving.bytes


@given(fabrics, gpu_sets, st.sampled_from(RINGS))
def test_every_ring_runs_to_its_end(name: str, chosen: list[int], collective: str) -> None:
    """Each sender sends all it may, again and again: no ring waits for itself, none takes more than 2 n turns."""
    fabric = FABRICS[name]
    found = messages(collective, [fabric.gpus[index] for index in chosen], fabric)
    sent = {message.channel: 0.0 for message in found}
    for _ in range(2 * 48 + 2):
        sent = {m.channel: min(m.bytes, m.lead + sent[m.after]) if m.after else m.bytes for m in found}
    assert [sent[m.channel] for m in found] == pytest.approx([m.bytes for m in found])


def test_the_last_byte_of_an_allreduce_ring_has_passed_every_other_host() -> None:
    """2 (n - 1) steps of one chunk: a message is that many leads long."""
    for message in messages("hierarchical", even(6, 8), FABRICS["bonded"]):
        assert message.bytes / message.lead == pytest.approx(2 * 5)


def test_hosts_with_more_nics_spread_the_common_number_of_rails_over_them() -> None:
    fabric = FABRICS["bonded"]
    gpus = ("h0g0", "h0g1", "h0g2", "h0g3", "h1g0", "h1g1", "h1g2", "h1g3", "h1g4", "h1g5", "h1g6", "h1g7")
    found = messages("hierarchical", gpus, fabric)
    assert {m.channel.source for m in found} == {"h0n0p0", "h0n1p0", "h1n0p0", "h1n2p0"}


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_inside_one_host_nothing_goes_over_the_network(collective: str) -> None:
    assert messages(collective, even(1, 8), FABRICS["bonded"]) == ()


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_a_collective_of_no_bytes_sends_nothing(collective: str) -> None:
    assert messages(collective, even(4, 8), FABRICS["bonded"], 0) == ()


def test_an_unknown_collective_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"unknown collective 'gossip'.*hierarchical"):
        messages("gossip", even(2, 8), FABRICS["bonded"])
    with pytest.raises(ValueError, match="unknown collective"):
        collective_named("gossip")


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(ValueError, match="-1 bytes"):
        messages("ring", even(2, 8), FABRICS["bonded"], -1)


def test_a_byte_of_a_flat_ring_leaves_a_host_as_many_chunks_after_it_entered_as_the_host_has_nics() -> None:
    gpus = (*even(1, 8), "h1g0", "h1g1")
    found = messages("ring", gpus, FABRICS["bonded"], 5e6)
    assert {m.channel.source: m.lead for m in found} == {"h0n3p0": pytest.approx(4e6), "h1n0p0": pytest.approx(1e6)}


def test_the_ports_of_a_nic_share_bytes_and_lead_evenly() -> None:
    whole, halves = (messages("hierarchical", even(2, 2), FABRICS[name]) for name in ("bonded", "ports"))
    assert {(m.bytes, m.lead) for m in halves} == {(m.bytes / 2, m.lead / 2) for m in whole}


@given(fabrics, gpu_sets, st.sampled_from(sorted(COLLECTIVES)), st.integers(1, 8))
def test_channels_share_the_bytes_of_each_pair_of_ports_evenly(
    name: str, chosen: list[int], collective: str, channels: int
) -> None:
    layout = layout_of([FABRICS[name].gpus[index] for index in chosen], FABRICS[name])
    whole = expand(collective, layout, SIZE)
    split = expand(collective, layout, SIZE, channels=channels)
    assert len(split) == channels * len(whole)
    assert len({each.channel for each in split}) == len(split)
    for index, message in enumerate(whole):
        parts = split[index * channels : (index + 1) * channels]
        assert {(part.channel.role, part.channel.source, part.channel.target) for part in parts} == {
            (message.channel.role, message.channel.source, message.channel.target)
        }
        assert sum(part.bytes for part in parts) == pytest.approx(message.bytes)
        assert sum(part.lead for part in parts) == pytest.approx(message.lead)


@given(fabrics, gpu_sets, st.sampled_from(RINGS), st.integers(2, 4))
def test_a_channel_of_a_ring_waits_for_no_other_channel(
    name: str, chosen: list[int], collective: str, channels: int
) -> None:
    layout = layout_of([FABRICS[name].gpus[index] for index in chosen], FABRICS[name])
    for message in expand(collective, layout, SIZE, channels=channels):
        assert message.after is not None and message.after.number == message.channel.number


def test_the_first_channel_keeps_the_name_that_a_single_one_has() -> None:
    first, second = (Channel("ring", "h0n0p0", "h1n0p0", number).flow_id("big") for number in (0, 1))
    assert (first, second) == ("big:ring:h0n0p0>h1n0p0", "big:ring.1:h0n0p0>h1n0p0")


@pytest.mark.parametrize("fabric_name", ["rail-optimized", "hpn"])
@pytest.mark.parametrize("collective", ["hierarchical", "alltoall", "parameter-server", "point-to-point"])
def test_a_rail_stays_on_its_tors_where_the_fabric_has_them(fabric_name: str, collective: str) -> None:
    fabric = FABRICS[fabric_name]  # hosts h0 to h5 are one segment
    for message in messages(collective, even(6, 8), fabric):
        (path,) = fabric.candidate_paths(message.channel.source, message.channel.target)
        assert len(path) == 2


def test_hosts_that_use_different_nics_keep_to_the_rails_that_they_share() -> None:
    gpus = ("h0g0", "h0g2", "h0g4", "h1g2", "h1g4")  # rails 0 to 2 and rails 1 and 2
    for name, expected in (
        ("rail-optimized", {("h0n1p0", "h1n1p0"), ("h0n2p0", "h1n2p0")}),
        ("bonded", {("h0n0p0", "h1n1p0"), ("h0n1p0", "h1n2p0")}),
    ):
        found = messages("hierarchical", gpus, FABRICS[name])
        assert {(each.channel.source, each.channel.target) for each in found if "h0" in each.channel.source} == expected
