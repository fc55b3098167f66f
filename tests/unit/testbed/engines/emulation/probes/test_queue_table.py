"""What moved in queues is read from whole dumps at once, and adds up to what the kernel counted."""

from __future__ import annotations

import struct
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.engines.emulation.probes.netlink import CounterSocket, QueueCounters, QueuePattern, places_of_queues
from testbed.engines.emulation.probes.queue_table import Layout, Move, QueueTable
from tests.unit.testbed.engines.emulation.probes.test_netlink import (
    DONE,
    ERROR,
    NEW_QDISC,
    TCA_KIND,
    Kernel,
    attribute,
    counters_of,
    message,
    qdisc,
)

u32 = st.integers(0, 2**32 - 1)
numbers = st.tuples(st.integers(0, 2**62), u32, u32, u32)
"""Bytes, packets, backlog and drops of a queue."""
names = st.tuples(st.integers(1, 500), st.integers(1, 0xFFFF))
dumps = st.lists(st.dictionaries(names, st.none() | numbers, max_size=6), min_size=1, max_size=4)
"""By namespace: interface and handle -> counters, or none."""


def bare(interface: int, handle: int) -> bytes:
    """A qdisc without counters."""
    return struct.pack("=BBHiIII", 0, 0, 0, interface, handle << 16, 0, 1) + attribute(TCA_KIND, b"noqueue\0")


def dump_of(queues: dict[tuple[int, int], tuple[int, int, int, int] | None]) -> bytes:
    return b"".join(
        message(NEW_QDISC, bare(*name) if counts is None else qdisc(*name, *counts)) for name, counts in queues.items()
    )


@given(dumps, st.data())
def test_arrays_hold_what_a_look_at_every_message_finds(
    first: list[dict[tuple[int, int], tuple[int, int, int, int] | None]], data: st.DataObject
) -> None:
    layout = Layout([dump_of(queues) for queues in first])
    now = [{name: counts and data.draw(numbers) for name, counts in queues.items()} for queues in first]
    found = layout.counters([dump_of(queues) for queues in now])
    assert found is not None
    slow = [
        (entry.bytes, entry.backlog, entry.drops)
        for queues in now
        for entry in counters_of(Kernel(*filter(None, [dump_of(queues)]), message(DONE, bytes(4)))).queues()
    ]
    assert [tuple(row) for row in found.tolist()] == slow


@given(dumps, dumps)
def test_dumps_of_other_queues_are_never_read_at_the_places_of_these(
    first: list[dict[tuple[int, int], tuple[int, int, int, int] | None]],
    then: list[dict[tuple[int, int], tuple[int, int, int, int] | None]],
) -> None:
    found = Layout([dump_of(queues) for queues in first]).counters([dump_of(queues) for queues in then])
    same = [[(name, counts is None) for name, counts in queues.items()] for queues in first] == [
        [(name, counts is None) for name, counts in queues.items()] for queues in then
    ]
    assert (found is not None) == same


@given(dumps, dumps, st.data())
def test_a_short_dump_is_read_in_one_go_if_it_is_laid_out_as_the_last(
    first: list[dict[tuple[int, int], tuple[int, int, int, int] | None]],
    then: list[dict[tuple[int, int], tuple[int, int, int, int] | None]],
    data: st.DataObject,
) -> None:
    pattern = QueuePattern(dump_of(first[0]))
    now = {name: counts and data.draw(numbers) for name, counts in first[0].items()}
    assert pattern.read(dump_of(now)) == [
        QueueCounters(interface, handle << 16, *(counts or (0, 0, 0, 0))) for (interface, handle), counts in now.items()
    ]
    same = [(name, counts is None) for name, counts in first[0].items()] == [
        (name, counts is None) for name, counts in then[0].items()
    ]
    assert (pattern.read(dump_of(then[0])) is not None) == same


@given(st.lists(st.lists(st.integers(0, 9000), min_size=4, max_size=4), min_size=1, max_size=8), st.data())
def test_what_moved_adds_up_to_what_the_kernel_counted_however_rarely_it_is_read(
    sent: list[list[int]], data: st.DataObject
) -> None:
    places = [(5, 16), (5, 17), (6, 16), (6, 17)]
    table, total = QueueTable([places[:2], places[2:]]), [0] * 4
    sums: dict[tuple[int, str], int] = defaultdict(int)
    for number, step in enumerate(sent):
        total = [before + more for before, more in zip(total, step, strict=True)]
        if number < len(sent) - 1 and not data.draw(st.booleans()):
            continue
        rows = {name: (size, 0, 0, size // 1000) for name, size in zip(places, total, strict=True)}
        moves = table.read([dump_of({name: rows[name] for name in names}) for names in (places[:2], places[2:])])
        assert (moves.made_anew, moves.missing) == ([], [])
        for move in moves.moves:
            sums[move.queue, "bytes"] += move.bytes
            sums[move.queue, "drops"] += move.drops
    assert [sums[queue, "bytes"] for queue in range(4)] == total
    assert [sums[queue, "drops"] for queue in range(4)] == [size // 1000 for size in total]


def test_a_queue_that_stands_still_and_empty_makes_no_work() -> None:
    table = QueueTable([[(5, 16), (5, 17)]])
    dump = dump_of({(5, 1): (900, 9, 0, 0), (5, 16): (900, 9, 0, 3), (5, 17): (500, 5, 40, 0)})
    assert table.read([dump]).moves == [Move(0, 900, 0, 3), Move(1, 500, 40, 0)]
    assert table.read([dump]).moves == [Move(1, 0, 40, 0)]


def test_queues_that_go_and_come_back_are_missed_and_then_counted_anew() -> None:
    table = QueueTable([[(5, 16), (5, 17)]])
    table.read([dump_of({(5, 16): (900, 9, 0, 3)})])
    assert table.read([b""]).missing == [0]  # the other one was never there
    back = table.read([dump_of({(9, 16): (1, 1, 1, 1), (5, 16): (200, 2, 0, 1)})])
    assert (back.moves, back.made_anew, back.missing) == ([Move(0, 200, 0, 1)], [0], [])


def test_a_dump_is_gathered_from_its_datagrams_up_to_its_end() -> None:
    first, then = (message(NEW_QDISC, qdisc(3, handle, 100, 1, 0, 0)) for handle in (16, 17))
    asked = Kernel(first, then + message(DONE, bytes(4)))
    assert [place.handle >> 16 for place in places_of_queues(counters_of(asked).queue_dump())] == [16, 17]
    with pytest.raises(OSError, match="refused"):
        counters_of(Kernel(message(ERROR, bytes(4)))).queue_dump()


def test_the_queues_of_this_machine_are_read_alike_either_way() -> None:
    counters = CounterSocket()
    try:
        places = [(place.interface, place.handle >> 16) for place in places_of_queues(counters.queue_dump())]
        assert places == [(entry.interface, entry.handle) for entry in counters.queues()]
    finally:
        counters.close()
