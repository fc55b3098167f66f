"""The rate a link reaches is measured only while a queue proves it busy."""

from __future__ import annotations

import pytest

from testbed.engines.emulation.probes.netlink import QueueCounters
from testbed.engines.emulation.probes.rate_probe import MIN_STRETCH_PACKETS, WATCHED_LINKS, ProbedLink, RateProbe

PACKET = 9000
RATE = 12.5e6
STEP = 3 * PACKET * 8 / RATE


class Counters:
    """A queue that sends ``rate`` bit/s while something waits."""

    def __init__(self, rate: float = RATE, waiting: int = 5 * PACKET) -> None:
        self.rate, self.waiting, self.sent, self.reads = rate, waiting, 0, 0

    def data_queue(self, interface: int) -> QueueCounters:
        self.reads += 1
        self.sent += round(self.rate * STEP / 8)
        return QueueCounters(interface, 1, self.sent, 0, self.waiting, 0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr("testbed.engines.emulation.probes.rate_probe.time.monotonic", lambda: now[0])
    return now


def probe_of(**links: Counters) -> RateProbe:
    probed = {name: ProbedLink(counters, 1, RATE) for name, counters in links.items()}  # type: ignore[arg-type]
    return RateProbe(probed, PACKET)


def poll(probe: RateProbe, clock: list[float], times: int) -> None:
    for _ in range(times):
        probe.poll()
        clock[0] += STEP


@pytest.mark.parametrize("share", [1.0, 0.9, 1.05])
def test_a_busy_link_shows_its_rate(share: float, clock: list[float]) -> None:
    probe = probe_of(a=Counters(share * RATE))
    probe.focus({"a": 10 * PACKET})
    poll(probe, clock, 102)
    busy_s, reached, grain = probe.results()["a"]
    assert busy_s == pytest.approx(100 * STEP)  # from the first look that finds something gone
    assert reached == pytest.approx(share, rel=1e-3)
    assert 0 < grain < 0.01


class Burst:
    """A queue that sends ``unit`` packets at once and then waits as long as ``rate`` asks for, looked at by a clock."""

    def __init__(self, clock: list[float], unit: int, rate: float = RATE, packets: int = 56) -> None:
        self.clock, self.unit, self.rate, self.packets = clock, unit, rate, packets

    def data_queue(self, interface: int) -> QueueCounters:
        units = int(self.clock[0] * self.rate / 8 / PACKET / self.unit) + 1
        sent = min(units * self.unit, self.packets)
        return QueueCounters(interface, 1, sent * PACKET, 0, (self.packets - sent) * PACKET, 0)


@pytest.mark.parametrize("unit", [1, 2, 4])
@pytest.mark.parametrize("share", [1.0, 0.9])
def test_packets_that_leave_together_do_not_make_a_link_seem_slow(unit: int, share: float) -> None:
    found = []
    for phase in range(20):
        clock = [phase / 20 * 1.2 * PACKET * 8 / RATE]
        link = ProbedLink(Burst(clock, unit, share * RATE), 1, RATE)  # type: ignore[arg-type]
        while clock[0] < 56 * PACKET * 8 / RATE:
            counters = link.socket.data_queue(1)
            link.look(clock[0], counters.bytes, counters.backlog, PACKET)
            clock[0] += 1.2 * PACKET * 8 / RATE
        link.end_stretch(PACKET)
        found += link.stretches
    _, reached, _ = link.reached(found, PACKET)
    assert len(found) == 20
    assert reached == pytest.approx(share, rel=0.005)


def test_a_link_whose_queue_runs_empty_says_nothing_about_its_rate(clock: list[float]) -> None:
    probe = probe_of(a=Counters(0.3 * RATE, waiting=0))
    probe.focus({"a": PACKET})
    poll(probe, clock, 100)
    assert probe.results() == {}


def test_a_stretch_of_a_few_packets_is_too_coarse_to_count(clock: list[float]) -> None:
    probe = probe_of(a=Counters())
    probe.focus({"a": PACKET})
    poll(probe, clock, MIN_STRETCH_PACKETS // 3)
    assert probe.results() == {}


def test_only_the_links_with_the_longest_queues_are_watched(clock: list[float]) -> None:
    counters = {f"l{index}": Counters() for index in range(40)}
    probe = probe_of(**counters)
    probe.focus({name: index * PACKET for index, name in enumerate(counters)})
    poll(probe, clock, 1)
    assert sum(entry.reads for entry in counters.values()) == WATCHED_LINKS
    assert counters["l0"].reads == 0


def test_among_the_waiting_the_least_watched_come_next(clock: list[float]) -> None:
    counters = {f"l{index}": Counters() for index in range(2 * WATCHED_LINKS)}
    probe = probe_of(**counters)
    for _ in range(2):
        probe.focus(dict.fromkeys(counters, PACKET))
        poll(probe, clock, 30)
        probe.focus({})
    assert all(entry.reads == 30 for entry in counters.values())
