"""A watched run in a terminal: its jobs, how busy their GPUs are, and the busiest links. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from testbed.metrics.formats import time_text
from testbed.watch.messages import JobState, LiveSample

MOST_JOBS: Final = 12
MOST_LINKS: Final = 5
IN_A_LINE: Final = 3


@dataclass(frozen=True, slots=True)
class BusyLink:
    """A link by name: the share of its rate that it sent, the levels it sent at, and the jobs whose paths cross it."""

    name: str
    share: float
    levels: tuple[int, ...]
    jobs: tuple[str, ...]


def busiest(sample: LiveSample, links: Sequence[str], routes: Mapping[str, Sequence[int]], most: int) -> list[BusyLink]:
    """The ``most`` links that sent most; ``links`` are names in the fabric's order."""
    shares: dict[int, float] = defaultdict(float)
    levels: dict[int, set[int]] = defaultdict(set)
    for load in sample.link_loads():
        shares[load.link] += load.share
        levels[load.link].add(load.level)
    ranked = sorted(shares, key=lambda link: (-shares[link], link))[:most]
    return [
        BusyLink(
            links[link],
            shares[link],
            tuple(sorted(levels[link])),
            tuple(job for job, route in routes.items() if link in route),
        )
        for link in ranked
    ]


def screen(sample: LiveSample, links: Sequence[BusyLink]) -> RenderableType:
    """Two small tables."""
    jobs = _table(
        f"{time_text(sample.time_s, 0)}: GPUs {percent(sample.utilization)} busy",
        "job",
        "GPUs",
        "level",
        "iterations",
        "busy",
    )
    shown = sorted(sample.jobs, key=lambda job: job.state == "ended")[:MOST_JOBS]
    for job in shown:
        jobs.add_row(Text(job.name), str(job.gpus), level(job), iterations(job), percent(job.utilization))
    if len(sample.jobs) > len(shown):
        jobs.add_row(Text(f"and {len(sample.jobs) - len(shown)} more"))
    busy = _table("busiest links", "link", "load", "levels", "jobs")
    for link in links:
        names = ", ".join(link.jobs)
        busy.add_row(Text(link.name), percent(link.share), ", ".join(map(str, link.levels)), Text(names))
    return Group(jobs, busy)


def _table(title: str, first: str, *rest: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column(first, no_wrap=True)
    for name in rest:
        table.add_column(name, justify="left" if name == "jobs" else "right", no_wrap=True)
    return table


def line(sample: LiveSample, links: Sequence[BusyLink]) -> str:
    """The same in one line."""
    running = [job for job in sample.jobs if job.state == "running"]
    jobs = [f"{job.name} {iterations(job)}, level {level(job)}, {percent(job.utilization)}" for job in running]
    busy = [f"{link.name} {percent(link.share)}" for link in links]
    parts = [
        f"GPUs {percent(sample.utilization)} busy",
        *_few(jobs),
        f"busiest links: {', '.join(_few(busy)) or 'none'}",
    ]
    return "; ".join(parts)


def _few(texts: Sequence[str]) -> list[str]:
    more = len(texts) - IN_A_LINE
    return [*texts[:IN_A_LINE], *([f"and {more} more"] if more > 0 else [])]


def iterations(job: JobState) -> str:
    """``5/8``, or that it has not begun, or has left."""
    return job.state if job.state == "waiting" else f"{job.iterations}/{job.planned}"


def level(job: JobState) -> str:
    """The level, or a dash."""
    return "-" if job.level is None else str(job.level)


def percent(share: float | None) -> str:
    """``87 %``, or a dash where nothing is known yet."""
    return "-" if share is None else f"{100 * share:.0f} %"
