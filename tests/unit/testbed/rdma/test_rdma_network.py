"""Packets at line rate do what analysis says: alone, behind each other, paused, in a circle."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from benchmarks.rdma.traffic import Traffic, experiment_of, network_model
from testbed.errors import RunFailedError
from testbed.experiment.network_model import Buffers, Delays, Ecn
from testbed.rdma.balancing import BALANCING
from testbed.rdma.state import WHEN_FULL

PACKET_S = (4096 + 82) * 8 / 100e9
"""A full packet on a link whose payload passes at slightly less than 100 Gbit/s takes at most this long."""
TRANSPORTS = ("unlimited", "dcqcn", "dctcp", "hpcc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rdma")


@pytest.mark.parametrize("size", [1.0, 4096.0, 1e6])
def test_a_message_alone_takes_its_bytes_over_the_rate_and_a_packet_more_per_link(folder: Path, size: float) -> None:
    model = network_model(delays=Delays(1e-6, 0.5e-6))
    traffic = Traffic(experiment_of(folder, model, hosts=2, tors=2))
    place = traffic.send(traffic.way("h0", "h1"), size)
    traffic.run()
    links, switches = 4, 3
    fluid = size * 8 / 100e9 + links * 1e-6 + switches * 0.5e-6
    assert fluid < traffic.ended[place] <= fluid + links * PACKET_S


def test_flows_on_links_of_their_own_do_not_disturb_each_other(folder: Path) -> None:
    traffic = Traffic(experiment_of(folder, network_model(), hosts=4))
    pair = [traffic.send(traffic.way("h0", "h1"), 1e6), traffic.send(traffic.way("h2", "h3"), 1e6)]
    traffic.run()
    assert traffic.ended[pair[0]] == traffic.ended[pair[1]]


def test_a_level_waits_until_nothing_of_a_higher_one_is_there(folder: Path) -> None:
    traffic = Traffic(experiment_of(folder, network_model(), hosts=3))
    high = traffic.send(traffic.way("h1", "h0"), 10e6, level=0)
    low = traffic.send(traffic.way("h2", "h0"), 10e6, level=3)
    traffic.run()
    alone = 10e6 * 8 / 100e9
    assert traffic.ended[high] == pytest.approx(alone, abs=3e-6 + 3 * PACKET_S)
    assert traffic.ended[low] == pytest.approx(2 * alone, abs=3e-6 + 3 * PACKET_S)


def test_only_the_level_that_is_congested_is_paused(folder: Path) -> None:
    """Both hosts send low to h0, more than it takes; h1 also sends high to h3: that goes on at its full rate."""
    model = network_model(buffers=Buffers(1e6, 0.125))
    traffic = Traffic(experiment_of(folder, model, hosts=4))
    for source in ("h1", "h2"):
        traffic.send(traffic.way(source, "h0"), 50e6, level=3)
    traffic.run(1e-3)
    begun = traffic.now
    high = traffic.send(traffic.way("h1", "h3"), 10e6, level=0)
    traffic.run()
    assert traffic.network.counted()["pauses"] > 0
    assert traffic.ended[high] - begun == pytest.approx(10e6 * 8 / 100e9, abs=3e-6 + 4 * PACKET_S)


def test_at_one_level_a_pause_holds_back_a_victim(folder: Path) -> None:
    """The same at one level: packets to h3 wait behind the pause that those to h0 have caused."""
    model = network_model(buffers=Buffers(1e6, 0.125))
    traffic = Traffic(experiment_of(folder, model, hosts=4))
    for source in ("h1", "h2"):
        traffic.send(traffic.way(source, "h0"), 50e6)
    traffic.run(1e-3)
    begun = traffic.now
    victim = traffic.send(traffic.way("h1", "h3"), 10e6)
    traffic.run()
    assert traffic.ended[victim] - begun > 1.8 * 10e6 * 8 / 100e9


def test_packets_that_wait_in_a_circle_are_a_deadlock_with_names(folder: Path) -> None:
    model = network_model(buffers=Buffers(1e6, 0.125))
    traffic = Traffic(experiment_of(folder, model, hosts=6, tors=3, aggregations=2))
    circles = (
        ("h{}n0p0->tor0", "tor0->agg0", "agg0->tor1", "tor1->agg1", "agg1->tor2", "tor2->h4n0p0"),
        ("h{}n0p0->tor1", "tor1->agg1", "agg1->tor0", "tor0->agg0", "agg0->tor2", "tor2->h5n0p0"),
    )
    for first, way in zip((0, 2), circles, strict=True):
        for host in (first, first + 1):
            traffic.send([link.format(host) for link in way], 50e6)
    with pytest.raises(
        RunFailedError, match="deadlock: at level 0 these links pause each other in a circle: "
    ) as error:
        traffic.run()
    assert {"tor0->agg0", "agg0->tor1", "tor1->agg1", "agg1->tor0"} <= set(str(error.value).replace(",", "").split())


def test_victims_of_pauses_are_counted_and_those_to_blame_are_not(folder: Path) -> None:
    """h1 and h2 send more to h0 than it takes; what h1 sends to h3, whose link is free, waits for their pauses."""
    model = network_model(buffers=Buffers(1e6, 0.125))
    traffic = Traffic(experiment_of(folder, model, hosts=4))
    blamed = [traffic.send(traffic.way(source, "h0"), 20e6) for source in ("h1", "h2")]
    traffic.run(1e-3)
    victim = traffic.send(traffic.way("h1", "h3"), 10e6)
    traffic.run()
    counts = {place: traffic.network.counts_of(place) for place in (*blamed, victim)}
    slower_s = traffic.ended[victim] - 1e-3 - 2 * 10e6 * 8 / 100e9  # it shares the port of h1 as well
    assert 0.5 * slower_s < counts[victim].held_s < traffic.ended[victim] - 1e-3
    assert counts[victim].victim_s > 0.95 * counts[victim].held_s
    assert all(counts[place].victim_s < 0.05 * counts[place].held_s for place in blamed)
    assert traffic.network.counted()["held_s"] == pytest.approx(sum(each.held_s for each in counts.values()))


def test_a_pause_that_leaves_the_congested_link_without_packets_has_no_victims(folder: Path) -> None:
    """So little room that the queue at the port to h0 runs empty before packets come again: they are to blame still."""
    model = network_model(delays=Delays(5e-6), buffers=Buffers(1e6, xoff=20e3, xon=0.0))
    traffic = Traffic(experiment_of(folder, model, hosts=3))
    for source in ("h1", "h2"):
        traffic.send(traffic.way(source, "h0"), 5e6)
    traffic.run()
    found = traffic.network.counted()
    assert max(traffic.ended.values()) > 1.05 * 2 * 5e6 * 8 / 100e9
    assert found["victim_s"] < 0.05 * found["held_s"]


def test_no_packet_is_held_where_nothing_is_paused(folder: Path) -> None:
    traffic = Traffic(experiment_of(folder, network_model("hpcc"), hosts=4))
    for source in ("h1", "h2", "h3"):
        traffic.send(traffic.way(source, "h0"), 1e6)
    traffic.run()
    found = traffic.network.counted()
    assert (found["held_s"], found["victim_s"], found["paused_s"]) == (0.0, 0.0, 0.0)


def test_sprayed_packets_arrive_out_of_order_and_others_do_not(folder: Path) -> None:
    """h1 also fills one of the two paths: packets of h0 over the other one overtake theirs."""

    def share(balancing: str) -> float:
        model = network_model("dcqcn", load_balancing=balancing)
        traffic = Traffic(experiment_of(folder, model, hosts=4, tors=2, aggregations=2))
        fixed = traffic.send(traffic.way("h1", "h3"), 5e6)
        traffic.network._state.flows[fixed].paths = 1
        place = traffic.send(traffic.way("h0", "h2"), 5e6)
        traffic.run()
        return traffic.network.counts_of(place).values()["out_of_order_share"]

    assert share("hash") == 0.0
    assert share("spray") > 0.1


def test_queues_are_sampled_with_what_waits_and_the_most_that_has_waited(folder: Path) -> None:
    traffic = Traffic(experiment_of(folder, network_model(), hosts=3))
    for source in ("h1", "h2"):
        traffic.send(traffic.way(source, "h0"), 1e6, level=2)
    traffic.run(40e-6)
    queue = traffic.network.take_queues()["tor0->h0n0p0", 2]
    arriving_s = 40e-6 - 1e-6 - PACKET_S  # two packets come while one leaves
    assert queue.queued == pytest.approx(arriving_s * 100e9 / 8, rel=0.1)
    assert queue.queued <= queue.longest <= queue.queued + 2 * 4178
    traffic.run()
    later = traffic.network.take_queues()["tor0->h0n0p0", 2]
    assert later.queued < 1e-3 and later.longest == pytest.approx(1e6 * 4178 / 4096, rel=0.02)
    assert ("tor0->h0n0p0", 2) not in traffic.network.take_queues()
    assert traffic.network.counted()["longest_queue_bytes"] == later.longest


@pytest.mark.parametrize("transport", ["unlimited", "dcqcn"])
def test_a_paused_level_sends_nothing(folder: Path, transport: str) -> None:
    """At any level of any link that is paused at the beginning and at the end of a microsecond, in one pause."""
    buffers = Buffers(1e6, xoff=30e3, xon=10e3)
    model = network_model(transport, buffers=buffers, load_balancing="spray")
    traffic = Traffic(experiment_of(folder, model, hosts=6, tors=2, aggregations=2))
    for number in range(1, 6):
        traffic.send(traffic.way(f"h{number}", "h0"), 2e6, level=number % 2)
    paused, before, looked = None, None, 0
    while len(traffic.ended) < 5:
        traffic.run(traffic.now + 1e-6)
        queues = traffic.network._state.queues
        since = np.where(queues["paused"] > 0, queues["pause_from_s"], np.inf)
        if paused is not None and before is not None:
            held = (since == paused) & np.isfinite(since)
            looked += int(held.sum())
            assert (queues["sent"][held] == before[held]).all()
        paused, before = since, queues["sent"].copy()
    assert looked > 100


@pytest.mark.parametrize("per", ["switch", "port"])
def test_with_fixed_thresholds_a_queue_is_paused_at_xoff_and_goes_on_at_xon(folder: Path, per: str) -> None:
    """What comes in after the pause was asked for is what is under way: two delays and three packets at most."""
    buffers = Buffers(1e6, xoff=200e3, xon=100e3, per=per)  # type: ignore[arg-type]
    traffic = Traffic(experiment_of(folder, network_model(buffers=buffers), hosts=3))
    for source in ("h1", "h2"):
        traffic.send(traffic.way(source, "h0"), 20e6)
    traffic.run()
    found = traffic.network.counted()
    queues = 1 if per == "port" else 2
    assert queues * 190e3 <= found["largest_buffer_bytes"] <= queues * (200e3 + 4178)
    under_way = 2e-6 * 100e9 / 8 * 4178 / 4096  # half of it leaves before the last of it comes
    assert 0.4 * under_way <= found["largest_headroom_bytes"] <= under_way + 3 * 4178
    cycle = 100e3 + under_way / 2  # what leaves of a queue from one pause to the next, and as much while it fills
    assert found["pauses"] == pytest.approx(2 * 20e6 / (2 * cycle), rel=0.25)


def test_ports_with_buffers_of_their_own_do_not_take_room_from_each_other(folder: Path) -> None:
    """h1 and h2 fill their ports; the packet of h3 would be dropped if the switch had one buffer for all."""

    def dropped(per: str) -> float:
        buffers = Buffers(1e5, 1.0, "selective-repeat", per=per)  # type: ignore[arg-type]
        traffic = Traffic(experiment_of(folder, network_model(buffers=buffers), hosts=6))
        for source in ("h1", "h2", "h3"):
            traffic.send(traffic.way(source, "h0"), 1e6)
        traffic.run(20e-6)
        before = traffic.network.counted()["dropped"]
        place = traffic.send(traffic.way("h4", "h5"), 4e5)
        traffic.run()
        assert before > 0
        return traffic.network._state.flows[place].delivered - traffic.network.total(place) / 4096

    assert dropped("port") == pytest.approx(0.0, abs=1.0)


def test_a_headroom_smaller_than_what_is_under_way_is_refused(folder: Path) -> None:
    model = network_model(buffers=Buffers(headroom=10e3))
    needed = 2e-6 * 100e9 / 8 * 4178 / 4096 + 3 * 4178
    with pytest.raises(RunFailedError, match=rf"headroom is 10000 bytes, expected at least {needed:.0f}: so much is"):
        Traffic(experiment_of(folder, model, hosts=2))


@pytest.mark.parametrize("balancing", ["spray", "spray-in-turn", "adaptive"])
def test_sprayed_packets_use_all_paths(folder: Path, balancing: str) -> None:
    """Two hosts of a ToR send to two of another over two aggregation switches: on one path they would share it."""
    model = network_model(load_balancing=balancing)
    traffic = Traffic(experiment_of(folder, model, hosts=4, tors=2, aggregations=2))
    pair = [traffic.send(traffic.way("h0", "h2"), 10e6), traffic.send(traffic.way("h1", "h3"), 10e6)]
    traffic.run()
    alone = 10e6 * 8 / 100e9
    assert max(traffic.ended[place] for place in pair) < 1.1 * alone
    loads = [moved for (link, _), moved in traffic.network.take_bytes().items() if link.startswith("tor0->agg")]
    assert len(loads) == 2 and max(loads) < 1.1 * min(loads)


@pytest.mark.parametrize("when_full", ["go-back-n", "selective-repeat"])
def test_what_a_full_switch_drops_is_sent_again_and_a_buffer_never_holds_more_than_it_has(
    folder: Path, when_full: str
) -> None:
    buffers = Buffers(5e5, 0.5, when_full)  # type: ignore[arg-type]
    traffic = Traffic(experiment_of(folder, network_model("dcqcn", buffers=buffers), hosts=5))
    places = [traffic.send(traffic.way(f"h{number}", "h0"), 5e6) for number in range(1, 5)]
    traffic.run()
    assert set(traffic.ended) == set(places)
    found = traffic.network.counted()
    assert found["dropped"] > 0 and found["pauses"] == 0
    assert found["largest_buffer_bytes"] <= 5e5
    assert all(traffic.network.total(place) == pytest.approx(5e6) for place in places)


def test_marks_of_packets_that_a_receiver_does_not_take_are_heard_of(folder: Path) -> None:
    """Eight senders to one host, with room for few packets: without notices they would drop most of what they send."""
    buffers = Buffers(1e5, 1.0, "go-back-n")
    model = network_model("dcqcn", buffers=buffers, ecn=Ecn(5e3, 5e3, 1.0))
    traffic = Traffic(experiment_of(folder, model, hosts=9))
    for number in range(1, 9):
        traffic.send(traffic.way(f"h{number}", "h0"), 20e6)
    traffic.run()
    found = traffic.network.counted()
    assert found["dropped"] < 0.1 * found["packets"]


def test_a_last_packet_that_is_dropped_is_sent_again_after_a_timeout(folder: Path) -> None:
    """One packet is being sent, one waits, and there is no room for a third, which has nothing behind it."""
    buffers = Buffers(6e3, 1.0, "go-back-n", timeout_s=2e-3)
    traffic = Traffic(experiment_of(folder, network_model(buffers=buffers), hosts=4))
    for source in ("h1", "h2", "h3"):
        traffic.send(traffic.way(source, "h0"), 4096.0)
    traffic.run()
    *others, last = sorted(traffic.ended.values())
    assert max(others) < 1e-4 and 2e-3 < last < 2.1e-3
    assert traffic.network.counted()["dropped"] == 1


def test_selective_repeat_needs_less_time_than_going_back(folder: Path) -> None:
    def seconds(when_full: str) -> float:
        buffers = Buffers(2e5, 0.5, when_full)  # type: ignore[arg-type]
        traffic = Traffic(experiment_of(folder, network_model("dcqcn", buffers=buffers), hosts=9))
        for number in range(1, 9):
            traffic.send(traffic.way(f"h{number}", "h0"), 2e6)
        traffic.run()
        return max(traffic.ended.values())

    assert 8 * 2e6 * 8 / 100e9 < seconds("selective-repeat") < seconds("go-back-n")


def test_sprayed_packets_avoid_a_cable_that_has_failed(folder: Path) -> None:
    model = network_model(load_balancing="spray")
    traffic = Traffic(experiment_of(folder, model, hosts=2, tors=2, aggregations=4))
    place = traffic.send(traffic.way("h0", "h1"), 1e6)
    traffic.run()
    traffic.network.take_bytes()
    left = traffic.fabric.without(["tor0->agg1"])
    traffic.network.lead_over(place, *left.candidate_paths("h0n0p0", "h1n0p0"))
    traffic.send((), 1e6, place=place)
    traffic.run()
    used = {link for link, _ in traffic.network.take_bytes() if link.startswith("tor0->agg")}
    assert used == {"tor0->agg0", "tor0->agg2", "tor0->agg3"}


def test_pauses_on_long_cables_find_room_however_many_are_on_their_way(folder: Path) -> None:
    """A pause and its end take a millisecond to arrive, and are asked for with every packet."""
    model = network_model(delays=Delays(1e-3), buffers=Buffers(2e6, xoff=4000.0, xon=0.0))
    traffic = Traffic(experiment_of(folder, model, hosts=6))
    places = [traffic.send(traffic.way(f"h{number}", "h0"), 20e6, number) for number in range(1, 6)]
    traffic.run()
    assert set(traffic.ended) == set(places)
    assert traffic.network.counted()["pauses"] > 1000


def test_a_buffer_without_room_for_a_packet_is_refused(folder: Path) -> None:
    model = network_model(buffers=Buffers(1e3))
    with pytest.raises(RunFailedError, match=r"network\.buffers\.size is 1000 bytes, expected room for a packet"):
        Traffic(experiment_of(folder, model, hosts=2))


def test_weights_are_refused_where_windows_are_not_the_decisions(folder: Path) -> None:
    traffic = Traffic(experiment_of(folder, network_model("dcqcn"), hosts=2))
    with pytest.raises(RunFailedError, match="gives flows weights, which transport dcqcn does not have"):
        traffic.network.weigh(0, (1.0, 2.0), 1e6)


def test_slices_are_whole_packets(folder: Path) -> None:
    """A ring that forwards by 10,000 bytes sends packets of 4,096 bytes, not 4,096, 4,096 and 1,808."""
    traffic = Traffic(experiment_of(folder, network_model(), hosts=3))
    leader, follower = (traffic.network.add(traffic.way(*ends), 0, 1e4) for ends in (("h0", "h1"), ("h1", "h2")))
    traffic.network.begin(leader, 40960.0, inf, None, 0.0)
    traffic.network.begin(follower, 40960.0, 0.0, leader, 0.0)
    for place in (leader, follower):
        traffic.network.send(place, True)
    traffic.run()
    assert traffic.network.counted()["packets"] == 20


def test_flowlets_of_a_steady_flow_stay_on_a_path_and_later_ones_may_not(folder: Path) -> None:
    model = network_model(load_balancing="flowlet", flowlet_gap_s=1e-3)
    traffic = Traffic(experiment_of(folder, model, hosts=2, tors=2, aggregations=8))
    place = traffic.send(traffic.way("h0", "h1"), 1e6)
    used = []
    for _ in range(12):
        traffic.run(traffic.now + 2e-3)
        used.append([link for link, _ in traffic.network.take_bytes() if link.startswith("tor0->agg")])
        traffic.send((), 1e6, place=place)
    assert {len(links) for links in used} == {1}
    assert len({links[0] for links in used}) > 1


def test_adaptive_switches_avoid_a_path_that_is_taken(folder: Path) -> None:
    """h0 to h2 fills the path over agg0; h1 to h3 is spread, but hardly over that."""
    model = network_model(load_balancing="adaptive")
    traffic = Traffic(experiment_of(folder, model, hosts=4, tors=2, aggregations=2))
    fixed = traffic.send(traffic.way("h0", "h2"), 10e6)
    traffic.network._state.flows[fixed].paths = 1
    traffic.send(traffic.way("h1", "h3"), 10e6)
    traffic.run()
    loads = {link: moved for (link, _), moved in traffic.network.take_bytes().items() if link.startswith("tor0->agg")}
    taken = traffic.way("h0", "h2")[1]
    assert loads[taken] < 1.25 * 10e6 < sum(loads.values()) - loads[taken] + 5e6


messages = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.floats(1.0, 3e5), st.integers(0, 2), st.integers(0, 3)),
    min_size=1,
    max_size=12,
)


REORDERED = [(0, 3, 180225.0, 0, 0), (3, 0, 172815.0, 0, 0), (5, 0, 120480.0, 2, 0), (4, 1, 42608.0, 2, 0)]
"""Packets that overtake each other fill a window with what its receiver does not take."""


@example(REORDERED, "dctcp", "spray-in-turn", "go-back-n", 0, 557, "switch", None)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    drawn=messages,
    transport=st.sampled_from(TRANSPORTS),
    balancing=st.sampled_from(list(BALANCING)),
    when_full=st.sampled_from(list(WHEN_FULL)),
    seed=st.integers(0, 5),
    kilobytes=st.integers(200, 2000),
    per=st.sampled_from(["switch", "port"]),
    xoff=st.sampled_from([None, 5e3, 50e3]),
)
def test_nothing_is_lost_or_delivered_twice_and_buffers_end_empty(
    folder: Path,
    drawn: list[tuple[int, int, float, int, int]],
    transport: str,
    balancing: str,
    when_full: str,
    seed: int,
    kilobytes: int,
    per: str,
    xoff: float | None,
) -> None:
    buffers = Buffers(kilobytes * 1e3, 0.25, when_full, per=per, xoff=xoff)  # type: ignore[arg-type]
    model = replace(network_model(transport), buffers=buffers, load_balancing=balancing)  # type: ignore[arg-type]
    experiment = experiment_of(folder, model, hosts=6, tors=2, aggregations=2, seed=seed)

    def run() -> tuple[Traffic, dict[int, float]]:
        traffic, sizes = Traffic(experiment), {}
        for source, target, size, level, number in drawn:
            if source != target:
                place = traffic.send(traffic.way(f"h{source}", f"h{target}", number), size, level)
                sizes[place] = size
        traffic.run()
        return traffic, sizes

    traffic, sizes = run()
    assert set(traffic.ended) == set(sizes)
    for place, size in sizes.items():
        assert traffic.network.total(place) == pytest.approx(size, rel=1e-9)
    state = traffic.network._state
    assert np.abs(state.queues["held"]).max() < 1e-3 and np.abs(state.queues["queued"]).max() < 1e-3
    assert not state.queues["pausing"].any() and not state.queues["paused"].any() and not state.links["waiting"].any()
    assert (state.pools["most"] <= state.pools["capacity"]).all() and np.abs(state.pools["used"]).max() < 1e-3
    room = 2 * state.links["delay"] * state.links["rate"] + 3 * (state.rules.payload + state.rules.header)
    assert (state.queues["most_headroom"] <= room[:, None]).all()
    assert (traffic.network.counted()["dropped"] == 0) or when_full != "pause"
    assert len(set(state.unused[: state.counters.unused[0]].tolist())) == len(state.unused)
    again, _ = run()
    assert again.ended == traffic.ended and again.network.counted() == traffic.network.counted()
