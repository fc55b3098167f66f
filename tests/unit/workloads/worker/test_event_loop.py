"""The workers' event loop: timers in order, readable descriptors, lines however they are cut."""

from __future__ import annotations

import os
import select

from hypothesis import given
from hypothesis import strategies as st

from workloads.worker.event_loop import LineReader, Loop


def test_timers_fire_in_the_order_of_their_times_and_never_early() -> None:
    loop, fired = Loop(), []
    now = loop.clock()

    def fire(name: str, when: float) -> None:
        def handler(late: float) -> None:
            fired.append((name, late >= 0 and loop.clock() >= when))
            loop.running = name != "last"

        loop.at(when, handler)

    fire("last", now + 0.006)
    fire("second", now + 0.003)
    fire("first", now - 1.0)
    fire("also second", now + 0.003)
    loop.run()
    assert fired == [("first", True), ("second", True), ("also second", True), ("last", True)]


def test_a_handler_gets_its_descriptors_events_until_it_is_forgotten() -> None:
    loop, seen = Loop(), []
    reading, writing = os.pipe()

    def handler(events: int) -> None:
        seen.append(events & select.EPOLLIN)
        loop.forget(reading)  # unread, it would be reported again at once
        loop.at(loop.clock() + 0.002, lambda _late: setattr(loop, "running", False))

    loop.watch(reading, select.EPOLLIN, handler)
    os.write(writing, b"x")
    loop.run()
    os.close(reading)
    os.close(writing)
    assert seen == [select.EPOLLIN]


def test_timers_that_always_are_due_do_not_starve_descriptors() -> None:
    loop, served = Loop(), []
    reading, writing = os.pipe()

    def handler(events: int) -> None:
        served.append(events & select.EPOLLIN)
        loop.running = False

    def again(_late: float) -> None:
        loop.at(0.0, again)

    loop.watch(reading, select.EPOLLIN, handler)
    loop.at(0.0, again)
    loop.at(loop.clock() + 0.002, lambda _late: os.write(writing, b"x"))  # type: ignore[arg-type,func-returns-value]
    loop.run()
    os.close(reading)
    os.close(writing)
    assert served == [select.EPOLLIN]


def test_a_descriptor_is_served_while_a_timer_is_a_moment_away() -> None:
    loop, served = Loop(), []
    reading, writing = os.pipe()
    os.write(writing, b"x")

    def handler(_events: int) -> None:
        served.append(loop.clock())
        loop.forget(reading)

    loop.watch(reading, select.EPOLLIN, handler)
    ends = loop.clock() + 0.001
    loop.at(ends, lambda _late: setattr(loop, "running", False))
    loop.run()
    os.close(reading)
    os.close(writing)
    assert served and loop.clock() >= ends


lines = st.lists(st.binary(max_size=20).map(lambda line: line.replace(b"\n", b"")), max_size=6)


@given(lines, st.lists(st.integers(1, 9), min_size=1, max_size=40))
def test_lines_come_out_whole_however_they_are_cut(given_lines: list[bytes], cuts: list[int]) -> None:
    reading, writing = os.pipe()
    try:
        reader, text, read = LineReader(reading), b"".join(line + b"\n" for line in given_lines), []
        while text:
            size = cuts.pop() if cuts else len(text)
            os.write(writing, text[:size])
            text = text[size:]
            read += reader.read() or []
        os.close(writing)
        writing = -1
        assert read == given_lines
        assert reader.read() is None
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)
