from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.progress import Progress, clock, remaining


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def test_without_a_terminal_progress_is_plain_lines():
    stream, now = io.StringIO(), Clock()
    with Progress(quiet=False, stream=stream, now=now) as progress:
        progress.phase("setup")
        now.time = 4.0
        progress.phase("measuring", 60.0)
        now.time = 24.0
        progress.advance_to(20.0, "iteration 7 of gpt")
        now.time = 25.0
        progress.advance_to(21.0)
        now.time = 64.0
        progress.done("all undisturbed")
    assert stream.getvalue().splitlines() == [
        "setup ...",
        "setup: done in 0:04",
        "measuring ...",
        "measuring: 0:20 elapsed, 0:40 left, iteration 7 of gpt",
        "measuring: done in 1:00, all undisturbed",
    ]


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_quiet_says_nothing(stream):
    with Progress(quiet=True, stream=stream) as progress:
        progress.phase("setup", 1.0)
        progress.advance_to(0.5)
    assert stream.getvalue() == ""


def test_on_a_terminal_the_phases_are_drawn():
    stream = Terminal()
    with Progress(quiet=False, stream=stream) as progress:
        progress.phase("setup", 2.0)
        progress.advance_to(1.0, "48 links")
        progress.phase("report")
    assert "setup" in stream.getvalue()
    assert "report" in stream.getvalue()


def test_a_phase_that_broke_is_not_called_done():
    stream = io.StringIO()
    with pytest.raises(ValueError, match="broken"), Progress(quiet=False, stream=stream) as progress:
        progress.phase("setup")
        raise ValueError("broken")
    assert stream.getvalue() == "setup ...\n"


@pytest.mark.parametrize(("seconds", "text"), [(0.2, "0:00"), (75.2, "1:15"), (3725, "1:02:05"), (-1, "0:00")])
def test_times_read_like_a_clock(seconds, text):
    assert clock(seconds) == text


def test_nothing_is_promised_before_anything_is_done():
    assert remaining(5.0, 0.0, 10.0) is None
    assert remaining(5.0, 1.0, None) is None


@given(st.floats(0.1, 1e5), st.floats(0.1, 1e5), st.floats(0.1, 1e5))
def test_the_time_left_is_never_negative(elapsed, value, total):
    left = remaining(elapsed, value, total)
    assert left is not None
    assert left >= 0
    if value < total:
        assert elapsed + left == pytest.approx(elapsed * total / value)


class Counter:
    """A view that shows how often it was looked at."""

    def __init__(self) -> None:
        self.looks = 0

    def screen(self) -> str:
        return self.line()

    def line(self) -> str:
        self.looks += 1
        return f"look {self.looks}"


def test_a_view_is_part_of_the_lines_which_come_more_often():
    stream, now = io.StringIO(), Clock()
    with Progress(quiet=False, stream=stream, now=now, view=Counter()) as progress:
        progress.phase("measuring", 60.0)
        for now.time in (1.0, 6.0, 7.0, 12.0):
            progress.advance_to(now.time, "note")
    assert [line.rpartition("; ")[2] for line in stream.getvalue().splitlines()[1:-1]] == ["look 1", "look 2"]


def test_on_a_terminal_a_view_is_below_the_bars():
    stream = Terminal()
    with Progress(quiet=False, stream=stream, view=Counter()) as progress:
        progress.phase("measuring", 60.0)
        progress.advance_to(3.0)
    last = stream.getvalue().rpartition("measuring")[2]
    assert "look" in last
