"""What is observed of processes, links and flows while a run goes on; :mod:`testbed.fidelity.verdict` judges it.

Times are seconds of the machine's clock since the run began.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from testbed.results.record import Finding


@dataclass(frozen=True, slots=True)
class Wait:
    """How a process was kept from running in one sampling interval that ended at ``time_s``.

    ``delay_s``: seconds that its slowest thread was ready and waited for a CPU; ``quota_s``: seconds that
    a quota of its control group held it back.
    """

    process: str
    time_s: float
    duration_s: float
    delay_s: float
    quota_s: float = 0.0

    @property
    def start_s(self) -> float:
        """Its begin, on the run's clock."""
        return self.time_s - self.duration_s

    @property
    def share(self) -> float:
        """Share of the interval spent waiting."""
        return min(1.0, self.delay_s / self.duration_s) if self.duration_s > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Standstill:
    """``process`` did nothing at all from ``from_s`` to ``to_s`` although a timer of its own was due.

    ``stopped``: it was seen to be stopped, by a signal, a debugger or a frozen control group.
    """

    process: str
    from_s: float
    to_s: float
    stopped: bool = False


def joined_standstills(late: Iterable[Standstill], stopped: Iterable[Standstill]) -> list[Standstill]:
    """What a process's own timer noticed and what was seen from outside: one standstill where they overlap."""
    joined: list[Standstill] = []
    for still in sorted([*late, *stopped], key=lambda each: (each.process, each.from_s)):
        last = joined[-1] if joined else None
        if last is not None and last.process == still.process and still.from_s < last.to_s:
            ends = last.from_s, max(last.to_s, still.to_s)
            joined[-1] = Standstill(last.process, *ends, last.stopped or still.stopped)
        else:
            joined.append(still)
    return sorted(joined, key=lambda each: each.from_s)


@dataclass(frozen=True, slots=True)
class Change:
    """Something set or decided was found otherwise: a ``setting`` of a link, the ``link`` itself, a flow's ``path``.

    Seen wrong first at ``from_s`` (what it was before the look before counts as right) and last at
    ``to_s``; ``lasting``: still wrong when the run ended.
    """

    kind: Literal["setting", "path", "link"]
    from_s: float
    to_s: float
    what: str
    link: str = ""
    lasting: bool = True

    @property
    def text(self) -> str:
        """What was found, and where, in words."""
        return f"link {self.link}: {self.what}" if self.link else self.what


@dataclass(frozen=True, slots=True)
class Order:
    """What a link sent while its level ``higher`` provably waited, for ``waited_s`` seconds in all.

    ``lower_bytes`` of levels below it, ``lower`` the one with most; ``capacity`` is what the link could send
    in that time, ``packet`` the size of a full one, both in bytes.
    """

    waited_s: float
    higher: int
    lower: int
    lower_bytes: int
    capacity: float
    packet: int
    from_s: float = 0.0
    to_s: float = 0.0


def wait_findings(kind: str, waits: Sequence[Wait], what: str) -> tuple[Finding, ...]:
    """A finding of ``kind`` for each stretch of ``waits`` of each process; ``what`` has {} for its name."""
    findings = []
    by_process = sorted(waits, key=lambda wait: (wait.process, wait.time_s))
    for process, group in groupby(by_process, key=lambda wait: wait.process):
        spans = merged([(wait.start_s, wait.time_s) for wait in group])
        findings += [Finding(kind, begin, end, what.format(process)) for begin, end in spans]
    return tuple(findings)


def merged(spans: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Spans in order, those that touch as one."""
    merged: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1] + 0.1:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def milliseconds(still: Standstill) -> str:
    """Its length in words."""
    return f"{(still.to_s - still.from_s) * 1e3:.0f} ms"


def touches(wait: Wait, spans: Sequence[tuple[float, float]]) -> bool:
    """Whether any of ``spans`` overlaps the interval of ``wait``."""
    return any(begin < wait.time_s and wait.start_s < end for begin, end in spans)
