from __future__ import annotations

import io

import pytest
from rich.console import Console

from testbed.watch.messages import JobState, LiveSample
from testbed.watch.terminal import BusyLink, busiest, line, screen

LINKS = ["h0->tor0", "tor0->agg0", "tor0->agg1", "agg1->tor1"]
JOBS = (
    JobState("big [bold]", 48, "running", 0, 3, 5, 0.815),
    JobState("small", 8, "running", None, 2, 5, None),
    JobState("late", 8, "waiting", None, 0, 5, None),
)
ROUTES = {"big [bold]": (1, 3), "small": (2, 3)}
SAMPLE = LiveSample(12.4, 0.7, JOBS, (1, 0, 500, 2, 7, 900, 3, 0, 500, 3, 7, 480), {})


def drawn(sample: LiveSample, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(screen(sample, busiest(sample, LINKS, ROUTES, 5)))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


def test_the_busiest_link_is_first_with_all_its_levels_and_jobs() -> None:
    assert busiest(SAMPLE, LINKS, ROUTES, 2) == [
        BusyLink("agg1->tor1", pytest.approx(0.98), (0, 7), ("big [bold]", "small")),
        BusyLink("tor0->agg1", 0.9, (7,), ("small",)),
    ]


def test_the_screen_shows_every_job_and_the_busiest_links_in_80_columns() -> None:
    text = drawn(SAMPLE)
    assert "12 s: GPUs 70 % busy" in text and "big [bold]" in text and "waiting" in text
    assert [row for row in text.splitlines() if "agg1->tor1" in row and "98 %" in row and "0, 7" in row]
    assert max(len(row) for row in text.splitlines()) <= 80


def test_more_jobs_than_fit_are_counted() -> None:
    many = tuple(JobState(f"job-{number}", 8, "running", 0, 1, 5, 0.5) for number in range(40))
    assert "and 28 more" in drawn(LiveSample(1.0, 0.5, many, ()))


def test_jobs_that_have_ended_make_room_for_those_that_run() -> None:
    many = tuple(JobState(f"job-{number}", 8, "ended", 0, 5, 5, 0.5) for number in range(40))
    assert "big" in drawn(LiveSample(1.0, 0.5, (*many, *JOBS), ()))


def test_a_line_says_it_in_short() -> None:
    assert line(SAMPLE, busiest(SAMPLE, LINKS, ROUTES, 3)) == (
        "GPUs 70 % busy; big [bold] 3/5, level 0, 82 %; small 2/5, level -, -; "
        "busiest links: agg1->tor1 98 %, tor0->agg1 90 %, tor0->agg0 50 %"
    )


def test_a_run_at_its_beginning_has_no_busy_links() -> None:
    empty = LiveSample(0.0, None, JOBS, ())
    assert line(empty, busiest(empty, LINKS, {}, 3)).endswith("busiest links: none")
    assert "GPUs - busy" in drawn(empty)
