"""Two jobs on one link at different levels, against the exact strict-priority schedule of the two.

Each job is an all-to-all of two hosts, so both ways of the link between the ToRs carry the same. The
exact schedule is :func:`controller.schedulers.crux.pair_simulation.sending_times`; Examples 1 and 2 are the 12 s
tables of section 4.2 of the Crux paper. Starting phases are set by ``shifts``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Final

from benchmarks.common import TWO_TORS, Run, Scenario
from controller.schedulers.crux.pair_simulation import State, sending_times
from testbed.metrics.job_metrics import decision_for
from testbed.results.record import IterationRow
from workloads.periodic_job import PeriodicJob, on_one_link

PORT_RATE: Final = 100e9
TOLERANCE: Final = 0.02
"""Of the window: how far sending and idle times may be from the exact ones."""
SPARE_ITERATIONS: Final = 2
EDGE_S: Final = 0.001
"""Less than a packet takes at the rates of an emulation."""


@dataclass(frozen=True, slots=True)
class Player:
    """A job: its iteration, and how far into it, run alone, the job stands when the window begins."""

    name: str
    pattern: PeriodicJob[str]
    offset_s: float

    @property
    def overlap(self) -> float:
        """Share of the compute that may be left when communication starts."""
        return 1.0 - self.pattern.lead_s / self.pattern.compute_s


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of a window in which a job sends, and in which its GPUs are idle."""

    sending_s: float
    idle_s: float


@dataclass(frozen=True, slots=True)
class Contest:
    """``high`` at level ``levels[0]`` and ``low`` at ``levels[1]``, watched for ``window_s``."""

    name: str
    high: Player
    low: Player
    window_s: float = 12.0
    levels: tuple[int, int] = (0, 1)

    @property
    def players(self) -> tuple[Player, Player]:
        """The two, the higher first."""
        return self.high, self.low

    @property
    def begin_s(self) -> float:
        """When the window begins: a whole second, at which links are sampled, by which both jobs can have started.

        Between samples bytes are taken in proportion, which is wrong for a job that sends in a part of the second only.
        """
        return float(ceil(max(player.offset_s for player in self.players)))

    def exact(self) -> tuple[Times, Times]:
        """What the two do in the window by the exact schedule."""
        states = [State.at(player.pattern, player.offset_s) for player in self.players]
        sending = sending_times(states[0], states[1], self.window_s)
        high, low = (Times(s, self.window_s - state.computed_s) for s, state in zip(sending, states, strict=True))
        return high, low

    def nearby(self) -> tuple[Times, Times]:
        """The exact schedule if both needed :data:`EDGE_S` more: where it is far from :meth:`exact`, that is an edge.

        Example 2 with J2 first is one: J2 leaves J1 gaps of exactly the 1 s that J1 needs. Where a message takes the
        least bit longer its end waits for 3 s, so anything that sends packets falls on either side of the edge.
        """
        longer = [shorter(player, player.pattern.communication_s + EDGE_S) for player in self.players]
        return replace(self, high=longer[0], low=longer[1]).exact()

    def scenario(self) -> Scenario:
        """The two jobs on either side of the link between two ToRs; long enough that both outlast the window."""
        hosts = (("h0", "h2"), ("h1", "h3"))
        jobs = [self._job(player, its) for player, its in zip(self.players, hosts, strict=True)]
        made = [self.window_s / player.pattern.period_s for player in self.players]
        lead = ceil(self.begin_s / min(player.pattern.period_s for player in self.players))
        return {
            "name": self.name,
            "fabric": dict(TWO_TORS),
            "channels": 1,
            "jobs": jobs,
            "scale": "auto",
            "measure": {"iterations": ceil(min(made)) + lead + SPARE_ITERATIONS, "warmup": 0, "time_limit": "120s"},
        }

    def scheduler(self) -> dict[str, Any]:
        """Levels and starting phases by hand."""
        shifts = {player.name: f"{self.begin_s - player.offset_s}s" for player in self.players}
        levels = {player.name: level for player, level in zip(self.players, self.levels, strict=True)}
        return {"name": "fixed", "levels": levels, "shifts": {name: s for name, s in shifts.items() if s != "0.0s"}}

    def measured(self, made: Run) -> tuple[Times, Times]:
        """What the two did in the window; ``ValueError`` if the run does not cover it."""
        high, low = (self._times(made, player, level) for player, level in zip(self.players, self.levels, strict=True))
        return high, low

    def _job(self, player: Player, hosts: Sequence[str]) -> dict[str, Any]:
        size = 2 * player.pattern.communication_s * PORT_RATE / 8
        return {
            "name": player.name,
            "model": "bert",
            "placement": list(hosts),
            "collective": "alltoall",
            "compute": f"{player.pattern.compute_s}s",
            "communication": f"{size:.0f}B",
            "overlap": player.overlap,
        }

    def _times(self, made: Run, player: Player, level: int) -> Times:
        end_s = self.begin_s + self.window_s
        rows = [row for row in made.record.iterations if row.job == player.name]
        if not rows or max(row.end_s for row in rows) < end_s:
            raise ValueError(f"{self.name}: the run ended before {end_s:g} s")
        gpus = len({row.gpu for row in rows})
        busy = sum(_busy(row, self.begin_s, end_s) for row in rows) / gpus
        links = _shared_links(made)
        sent = [_sent(made, link, level, end_s) - _sent(made, link, level, self.begin_s) for link in links]
        return Times(8 * sum(sent) / len(sent) / PORT_RATE, self.window_s - busy)


EXAMPLE_1: Final = (Player("one", on_one_link(2.0, 2.0, 2.0), 2.0), Player("two", on_one_link(1.0, 1.0, 1.0), 1.0))
"""Serial; both begin to communicate at the window's begin."""
EXAMPLE_2: Final = (Player("one", on_one_link(4.0, 1.0, 2.0), 0.0), Player("two", on_one_link(2.0, 3.0, 1.0), 1.0))
"""Communication after half of the compute; the first begins its compute, the second stands in mid-iteration."""
HIDDEN: Final = (Player("one", on_one_link(1.0, 0.8, 0.0), 0.0), Player("two", on_one_link(0.6, 0.9, 0.6), 0.3))
"""The first may hide all of its communication, the second none."""

FIRST, SECOND = EXAMPLE_2


def shorter(player: Player, communication_s: float) -> Player:
    """``player`` with another length of its communication."""
    pattern = player.pattern
    return replace(player, pattern=on_one_link(pattern.compute_s, communication_s, pattern.lead_s))


CONTESTS: Final = (
    Contest("example-1-J1-first", *EXAMPLE_1),
    Contest("example-1-J2-first", *EXAMPLE_1[::-1]),
    Contest("example-2-J1-first", *EXAMPLE_2),
    Contest("example-2-J2-first", *EXAMPLE_2[::-1]),
    Contest("example-2-J2-first-fits", SECOND, shorter(FIRST, 0.96)),
    Contest("example-2-J2-first-exceeds", SECOND, shorter(FIRST, 1.04)),
    Contest("hidden-J1-first", *HIDDEN, levels=(3, 4)),
    Contest("hidden-J2-first", *HIDDEN[::-1], levels=(0, 7)),
)


def _busy(row: IterationRow, begin_s: float, end_s: float) -> float:
    """Seconds of an iteration's compute inside a window; what is left of the iteration is waiting before it."""
    waited = max(0.0, row.end_s - row.start_s - row.compute_s - row.exposed_s - row.straggler_s)
    start = row.start_s + waited
    return max(0.0, min(end_s, start + row.compute_s) - max(begin_s, start))


def _shared_links(made: Run) -> list[str]:
    """The links between ToRs and aggregation switch that flows of both jobs pass, both ways."""
    used = []
    for job in made.experiment.jobs:
        paths = decision_for(made.record, job).paths
        used.append(dict.fromkeys(link for flow in job.flows for link in paths[flow.id]))
    return [link for link in used[0] if link in used[1]]


def _sent(made: Run, link: str, level: int, at_s: float) -> float:
    """Bytes that ``link`` had sent at ``level`` by ``at_s``, between samples in proportion.

    A sample without traffic leaves no row, so their times are those of the CPU's.
    """
    rows = {row.time_s: row.bytes for row in made.record.links if row.link == link and row.level == level}
    seconds: Any = made.record.environment["cpu"]
    times = sorted({second[0] / made.experiment.scale.time for second in seconds} | set(rows))
    total, before = 0.0, 0.0
    for index in range(bisect_left(times, at_s) + 1):
        if index == len(times):
            break
        moved, now = rows.get(times[index], 0.0), times[index]
        total += moved * (1.0 if now <= at_s else (at_s - before) / (now - before))
        before = now
    return total
