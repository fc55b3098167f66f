"""The load of links, and their queues, as counters of a timeline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from testbed.results.link_samples import sample_starts
from testbed.results.record import LinkRow
from testbed.results.trace.events import Event, Room, micro
from topologies.fabric import Fabric

COUNTED_LINKS: Final = 64
"""Most links with a counter: as many as a person looks through."""


def link_counters(rows: Sequence[LinkRow], fabric: Fabric, process: int, room: Room) -> Iterator[Event]:
    """A counter per link, in % of its rate, of the busiest links; those between switches, where jobs contend, first.

    A sample tells what was sent since the one before it, a counter holds from its time on: so each value stands at
    the beginning of its stretch. A value that stays is not repeated.
    """
    sent: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
    for row in rows:
        if row.link in fabric.links:
            sent[row.link][row.time_s] += row.bytes
    starts = sample_starts(rows)
    shown = _busiest(sent, fabric)
    last = dict.fromkeys(shown, -1.0)
    for time_s, begin in starts.items():
        for link in shown:
            percent = _percent(sent[link].get(time_s, 0.0), time_s - begin, fabric.links[link].capacity)
            if percent != last[link]:
                last[link] = percent
                yield from room.take(begin, [_counter(link, begin, percent, process)])
    for link in (link for link, value in last.items() if value > 0):
        yield from room.take(max(starts), [_counter(link, max(starts), 0.0, process)])


def queue_counters(rows: Sequence[LinkRow], process: int, room: Room) -> Iterator[Event]:
    """A counter per link of the longest queue of its levels in each stretch, in KB, of the links where it was longest.

    There is none where queues are not sampled. As with loads, a value stands at the beginning of its stretch.
    """
    longest: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
    for row in rows:
        if row.longest_queue_bytes > 0.0:
            here = longest[row.link]
            here[row.time_s] = max(here[row.time_s], row.longest_queue_bytes)
    starts = sample_starts(rows)
    shown = sorted(longest, key=lambda link: (-max(longest[link].values()), link))[:COUNTED_LINKS]
    for time_s, begin in starts.items():
        for link in shown:
            yield from room.take(begin, [_queue_counter(link, begin, longest[link].get(time_s, 0.0), process)])


def _queue_counter(link: str, time_s: float, longest: float, process: int) -> Event:
    kilobytes = round(longest / 1e3, 1)
    return {
        "ph": "C",
        "name": f"queue {link}",
        "ts": micro(time_s),
        "pid": process,
        "tid": 0,
        "args": {"longest KB": kilobytes},
    }


def _busiest(sent: Mapping[str, Mapping[float, float]], fabric: Fabric) -> list[str]:
    total = {link: sum(by_time.values()) / fabric.links[link].capacity for link, by_time in sent.items()}
    known = [link for link, load in total.items() if load > 0]
    return sorted(known, key=lambda link: (fabric.links[link].kind == "host-tor", -total[link], link))[:COUNTED_LINKS]


def _percent(size: float, seconds: float, capacity: float) -> float:
    return round(100 * 8 * size / seconds / capacity, 1) if seconds > 0 else 0.0


def _counter(link: str, time_s: float, percent: float, process: int) -> Event:
    return {"ph": "C", "name": link, "ts": micro(time_s), "pid": process, "tid": 0, "args": {"load %": percent}}
