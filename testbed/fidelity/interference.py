"""What neighbours on the machine, other guests and other processes, took from a run and when. Pure.

Their part of the thresholds of the fidelity verdict is here; times are seconds of the machine's clock
since the run began.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from testbed.fidelity.observations import Standstill, Wait, touches

MIN_IDLE_CPU: Final = 0.35
"""Mininet-HiFi's rule: below this share of idle CPU in a second, packets and timers are no longer served in time."""

MAX_STOLEN: Final = 0.10
"""Share of CPU time that other guests may take in a second. Measured: iterations are longer by 0.2 % (median) where
they took less than 2 %, by 1 % at 7 to 10 %, by 2 % at 10 to 15 % and by 6 % at 20 to 25 %. While a core is taken the
shapers it serves miss their time, and a queue that is empty meanwhile shows no rate that is too low."""

MAX_STANDSTILL_S: Final = 0.1
"""Five times the lateness allowed: a process stood still, and even its listed iterations do not say what that did."""

MAX_RUN_DELAY: Final = 0.25
"""Share of a second that a thread may be ready and wait for a CPU. Runs that keep 35 % idle stay under 0.1,
with half of the CPU taken by others under 0.2: more serves packets late although CPU is left over."""

EXPLAINED_BY_MACHINE: Final = 0.5
"""A standstill, or a wait, is the neighbours' doing if they took at least this share of its length meanwhile."""


@dataclass(frozen=True, slots=True)
class Second:
    """One sampling interval of CPU time; shares of all cores. ``time_s`` is its end, on the run's clock.

    ``pressure`` is the share of it in which something on the machine waited for a CPU (PSI, ``some``).
    """

    time_s: float
    duration_s: float
    idle: float
    stolen: float
    foreign: float
    pressure: float = 0.0

    @property
    def starved(self) -> bool:
        """Whether too little CPU was idle."""
        return self.idle < MIN_IDLE_CPU

    @property
    def disturbed(self) -> bool:
        """Whether neighbours took too much: they left too little, or other guests had much; not the run's own load."""
        taken = self.starved or self.stolen > MAX_STOLEN
        return taken and self.idle + self.stolen + self.foreign >= MIN_IDLE_CPU

    @property
    def start_s(self) -> float:
        """Its begin, on the run's clock."""
        return self.time_s - self.duration_s


def taken_spans(seconds: Sequence[Second]) -> list[tuple[float, float]]:
    """The seconds in which neighbours took too much CPU."""
    return [(second.start_s, second.time_s) for second in seconds if second.disturbed]


def disturbed_spans(
    seconds: Sequence[Second], standstills: Sequence[Standstill] = (), waits: Sequence[Wait] = (), cores: int = 1
) -> list[tuple[float, float]]:
    """The intervals in which neighbours took too much CPU, made the run stand still or kept it waiting."""
    still = [each for each in standstills if stood_still(each) and still_explained(each, seconds, cores)]
    kept = [each for each in waits if each.share > MAX_RUN_DELAY and wait_explained(each, seconds, cores)]
    spans = taken_spans(seconds) + [(each.from_s, each.to_s) for each in still]
    return spans + [(each.start_s, each.time_s) for each in kept]


def stood_still(still: Standstill) -> bool:
    """Whether a standstill is longer than a hitch."""
    return still.to_s - still.from_s > MAX_STANDSTILL_S


def still_explained(still: Standstill, seconds: Sequence[Second], cores: int) -> bool:
    """Whether neighbours took enough CPU to be the reason of a standstill; of one that was stopped they never are."""
    length = still.to_s - still.from_s
    return not still.stopped and _taken_s(still.from_s, still.to_s, seconds, cores) >= EXPLAINED_BY_MACHINE * length


def wait_explained(wait: Wait, seconds: Sequence[Second], cores: int) -> bool:
    """Whether neighbours took enough CPU to be the reason that a process waited for one."""
    taken = _taken_s(wait.start_s, wait.time_s, seconds, cores)
    return touches(wait, taken_spans(seconds)) or taken >= EXPLAINED_BY_MACHINE * wait.delay_s


def _taken_s(from_s: float, to_s: float, seconds: Sequence[Second], cores: int) -> float:
    """CPU seconds that other guests took, and other processes where no CPU was left, in the seconds of a span."""
    return sum(
        (second.stolen + (second.foreign if second.starved else 0.0)) * second.duration_s * cores
        for second in seconds
        if second.start_s < to_s and from_s < second.time_s
    )
