"""Packets through queues: closed forms, what holds always, and what was measured with real ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.engines.flow.networks.packet_network import PacketNetwork
from tests.unit.testbed.packets.networks import PACKET, RATE, SHRUNK, ends, network, send
from topologies.shaping import BURST_S

PACKET_S = PACKET / RATE
SIZES = st.lists(st.floats(0.01, 40.0), min_size=1, max_size=12)


def test_a_message_takes_its_bytes_at_the_rate_of_its_link_and_its_last_packet_one_packet_time_per_further_link() -> (
    None
):
    made = network({"a": RATE, "b": RATE, "c": RATE})
    place = send(made, ["a", "b", "c"], 100)
    # A token bucket passes a packet on when the one before is paid for: the first at once.
    assert ends(made)[place] == pytest.approx(99 * PACKET_S, rel=1e-6)


def test_a_slower_link_further_on_decides_and_holds_no_more_than_the_window() -> None:
    made = network({"a": RATE, "b": RATE / 4})
    place = send(made, ["a", "b"], 50)
    assert ends(made)[place] == pytest.approx(49 * 4 * PACKET_S, rel=1e-6)


def test_a_short_packet_takes_the_time_of_its_headers_too() -> None:
    made = network({"a": RATE})
    first, second, third = (send(made, ["a"], size) for size in (1, 0.5, 1))
    found = ends(made)
    assert found[first] == 0.0 and found[second] == pytest.approx(PACKET_S, rel=1e-5)
    assert found[third] == pytest.approx(PACKET_S * (1 + (0.5 * PACKET + 54) / (PACKET + 54)), rel=1e-5)


def test_equal_flows_share_a_link_and_end_together() -> None:
    made = network({"a": RATE})
    places = [send(made, ["a"], 100) for _ in range(4)]
    found = ends(made)
    assert max(found.values()) == pytest.approx(399 * PACKET_S, rel=1e-6)
    assert min(found[place] for place in places) > 390 * PACKET_S


def test_a_higher_level_goes_first_and_delays_a_lower_one_by_exactly_its_bytes() -> None:
    made = network({"a": RATE})
    low, high = send(made, ["a"], 100, level=5), send(made, ["a"], 40, level=2)
    found = ends(made)
    # Two packets of the lower level were there first: one left, the other waits behind all of the higher level's.
    assert found[high] == pytest.approx(40 * PACKET_S, rel=1e-6)
    assert found[low] == pytest.approx(139 * PACKET_S, rel=1e-6)


def test_an_idle_link_has_a_bucket_to_give_away() -> None:
    made = network({"a": RATE * SHRUNK}, dilation=1.0)
    packet = made._packet
    place = made.add(["a"], 0)
    made.begin(place, 50 * packet, 50 * packet, None, 0.0)
    made.send(place, True)
    rate, bucket = RATE * SHRUNK, RATE * SHRUNK * BURST_S
    assert ends(made)[place] == pytest.approx((49 * packet - bucket) / rate, rel=1e-6)


def test_a_flow_that_waits_in_its_nic_has_two_packets_there_and_the_rest_behind_others() -> None:
    # Two of eight packets wait with those of the other flow of the NIC, six with those of the other flow of the port.
    made = network({"nic": RATE, "another": RATE, "port": RATE})
    long, _, _ = (send(made, way, 1e6) for way in (["nic", "port"], ["nic"], ["another", "port"]))
    made.run(0.0, 200.0)
    assert made.total(long) / (200.0 * RATE) == pytest.approx(1 / (2 + 2 / 8), rel=0.02)


def test_packets_of_a_raised_level_overtake_older_ones_and_are_taken_after_them() -> None:
    made = network({"nic": RATE, "another": RATE, "port": RATE})
    other, flow = send(made, ["another", "port"], 100, level=3), send(made, ["nic", "port"], 16, level=5)
    now, _ = made.run(0.0, 3 * PACKET_S)
    few = made.sent(flow)
    made.set_level(flow, 0)
    now, _ = made.run(now, 50 * PACKET_S)
    # All of its window has been sent, and what was sent after the change has arrived; but the first packets starve.
    assert few < made.sent(flow) <= 8 * PACKET + made.total(flow) and made.total(flow) <= PACKET
    found = ends(made)
    assert found[flow] > found[other] > now


def test_a_message_of_next_to_nothing_arrives_too() -> None:
    made = network({"a": RATE})
    place = made.add(["a"], 0)
    made.begin(place, 1e-3, 1e-3, None, 0.0)
    made.send(place, True)
    assert ends(made)[place] == 0.0


def test_the_level_changes_at_the_very_byte() -> None:
    made = network({"a": RATE})
    place = made.add(["a"], 5)
    made.begin(place, 10 * PACKET, 10 * PACKET, None, 0.0)
    made.set_level(place, 5, 3.25 * PACKET)
    made.send(place, True)
    now, reached = made.run(0.0, 10.0)
    assert reached == [place] and made.sent(place) == pytest.approx(3.25 * PACKET)
    made.set_level(place, 2)
    while not made.ended(place):
        now, _ = made.run(now, 10.0)
    sent = {level: moved / PACKET for (_, level), moved in made.take_bytes().items()}
    assert sent == {5: pytest.approx(3.25), 2: pytest.approx(6.75)}


def test_what_is_forwarded_has_come_in_whole_slices() -> None:
    made = network({"a": RATE / 3, "b": RATE})
    first = made.add(["a"], 0)
    made.begin(first, 100 * PACKET, 100 * PACKET, None, 0.0)
    second = made.add(["b"], 0, 2 * PACKET)
    made.begin(second, 100 * PACKET, 10 * PACKET, first, 0.0)
    made.send(first, True)
    made.send(second, True)
    now = 0.0
    while now < 2.0:
        now, _ = made.run(now, now + PACKET_S / 2)
        assert made.sent(second) <= 10 * PACKET + made.total(first) // (2 * PACKET) * 2 * PACKET + 1e-3
    found = ends(made)
    assert found[second] == pytest.approx(89 * 3 * PACKET_S, rel=0.02)


def test_a_flow_with_a_limit_ends_when_its_rate_implies() -> None:
    made = network({"a": RATE})
    place = made.add(["a"], 0)
    made.set_limit(place, RATE / 5)
    made.begin(place, 40 * PACKET, 40 * PACKET, None, 0.0)
    held_s = made.hold_back_s(place, 0.0)
    made.send(place, True)
    assert ends(made)[place] + held_s == pytest.approx(40 * 5 * PACKET_S, rel=1e-6)


def test_windows_by_weight_give_shares_by_weight() -> None:
    made = network({"a": RATE, "b": RATE, "port": RATE})
    growing, constant = made.add(["a", "port"], 0), made.add(["b", "port"], 0)
    made.weigh(growing, (1.0, 3.0), 1000 * PACKET)
    for place in (growing, constant):
        made.begin(place, 1000 * PACKET, 1000 * PACKET, None, 0.0)
        made.send(place, True)
    now, shares = 0.0, []
    while not made.ended(growing):
        before = made.total(growing), made.total(constant)
        now, _ = made.run(now, now + 1.0)
        shares.append((made.total(growing) - before[0]) / (1.0 * RATE))
    # Windows of 8 packets each, and after half of the message of 24 against 8.
    assert shares[2] == pytest.approx(0.5, abs=0.02) and shares[12] == pytest.approx(0.75, abs=0.02)


@given(SIZES, st.integers(0, 7))
def test_every_byte_is_counted_once_on_each_link_and_no_flow_has_more_in_flight_than_its_window(
    sizes: list[float], seed: int
) -> None:
    made = network({"a": RATE, "b": RATE / 2, "c": 2 * RATE})
    ways = [["a", "b"], ["a", "c"], ["c"], ["c", "b"]]
    places = [send(made, ways[(seed + place) % 4], size, (seed * place) % 8) for place, size in enumerate(sizes)]
    now = 0.0
    while not all(made.ended(place) for place in places):
        now, _ = made.run(now, now + PACKET_S)
        in_flight = [made._flows["in_flight"][place] for place in places]
        assert max(in_flight) <= 8 * PACKET * (1 + 1e-9) and min(in_flight) >= -1e-6
        assert now < 10_000
    counted: dict[str, float] = {}
    for (link, _), moved in made.take_bytes().items():
        counted[link] = counted.get(link, 0.0) + moved
    for link in "abc":
        crossing = sum(size for place, size in enumerate(sizes) if link in ways[(seed + place) % 4])
        assert counted.get(link, 0.0) == pytest.approx(crossing * PACKET, rel=1e-9)
    assert now >= max(counted.get("b", 0.0) / (RATE / 2), counted.get("a", 0.0) / RATE) - 2 * PACKET_S - PACKET_S


def test_places_are_used_again_and_room_is_made_for_more_flows_packets_and_links() -> None:
    made = network({f"l{number}": RATE for number in range(20)})
    for _ in range(3):
        places = [send(made, [f"l{hop}" for hop in range(number % 19 + 1)], 20) for number in range(200)]
        found = ends(made, until=1e5)
        assert set(found) == set(places)
        for place in places:
            made.remove(place)
    assert len(made._state.flows) == len(made._state.to_try) == 256


def test_packets_of_a_flow_that_was_removed_travel_on_before_its_place_is_used_again() -> None:
    made = network({"a": RATE / 100})
    place = send(made, ["a"], 5)
    made.run(0.0, 0.001)
    made.remove(place)
    assert made.add(["a"], 0) != place
    made.run(0.001, 1e3)
    assert place in [made.add(["a"], 0) for _ in range(70)]


def test_nobody_hears_of_a_message_whose_flow_was_removed_while_its_last_packets_were_under_way() -> None:
    made = network({"a": RATE / 100})
    place = send(made, ["a"], 2)
    now, _ = made.run(0.0, 0.001)
    assert made.sent(place) == pytest.approx(2 * PACKET) and not made.ended(place)
    made.remove(place)
    assert made.run(now, 1e3) == (1e3, [])


def total(made: PacketNetwork) -> float:
    """Bytes that have crossed links."""
    return sum(made.take_bytes().values())


def test_a_flow_that_is_stopped_sends_nothing_more_until_it_goes_on() -> None:
    made = network({"a": RATE})
    place = send(made, ["a"], 50)
    now, _ = made.run(0.0, 0.1)
    made.send(place, False)
    now, _ = made.run(now, 5.0)
    assert total(made) <= 14 * PACKET
    made.send(place, True)
    assert ends(made)[place] > 5.0 or made.ended(place)


def test_what_waits_at_a_link_is_read_with_the_most_that_has_waited_since_the_last_time() -> None:
    made = network({"a": RATE})
    for _ in range(4):
        send(made, ["a"], 3, level=2)
    made.run(0.0, 0.5 * PACKET_S)
    # One packet has left; each flow has two in its NIC.
    (place,), (sample,) = zip(*made.take_queues().items(), strict=True)
    assert place == ("a", 2) and sample == (8 * PACKET, 8 * PACKET, 0.0, 0)
    ends(made)
    assert made.take_queues()[place] == (0.0, pytest.approx(8 * PACKET), 0.0, 0)
    assert made.take_queues() == {}


def test_packets_in_turn_take_paths_alike_and_flows_of_a_switch_share_the_turn() -> None:
    made = network({"nic": 3 * RATE, "x": RATE, "y": RATE, "z": RATE})
    places = [made.add(["nic", "x"], level) for level in (0, 1)]
    for place in places:
        made.lead_over(place, ["nic", "x"], ["nic", "y"], ["nic", "z"])
        made.begin(place, 60 * PACKET, 60 * PACKET, None, 0.0)
        made.send(place, True)
    assert set(ends(made)) == set(places)
    sent = made.take_bytes()
    by_cable = {cable: sum(sent[cable, level] for level in (0, 1)) for cable in "xyz"}
    assert all(moved == pytest.approx(40 * PACKET) for moved in by_cable.values())


def test_a_flow_on_three_paths_is_as_fast_as_its_nic_and_arrives_in_order() -> None:
    made = network({"nic": 3 * RATE, "x": RATE, "y": RATE, "z": RATE})
    place = made.add(["nic", "x"], 0)
    made.lead_over(place, ["nic", "x"], ["nic", "y"], ["nic", "z"])
    made.begin(place, 300 * PACKET, 300 * PACKET, None, 0.0)
    made.send(place, True)
    assert ends(made)[place] == pytest.approx(100 * PACKET_S, rel=0.03)
