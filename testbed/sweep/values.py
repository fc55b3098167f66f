"""A sweep, its points and what each of them found, as values. Pure."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from testbed.errors import EXIT_CHECK_FAILED, EXIT_NOT_BELIEVABLE, EXIT_OK

LONGEST_NAME: Final = 120
"""Characters of a point's name; a file system takes 255 bytes, drafts of files need some of them."""

Settings = tuple[tuple[str, str], ...]
"""``(key, value as YAML)`` of every parameter, in the order of the sweep file: one combination."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A parameter: the dotted ``key`` of the scenario, and its ``values`` as YAML of one line."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Sweep:
    """A sweep file that is right by itself.

    ``path`` is what messages call the file, ``scenario`` what ``testbed run`` would be given. ``schedulers`` is a
    YAML list, empty for the scenario's own; no ``seeds`` stand for the scenario's own. ``lines``: override
    (``KEY=VALUE``) -> the line it comes from; the other two are those of the keys ``scenario`` and ``set``.
    """

    path: str
    scenario: str
    engine: str = "emulation"
    schedulers: str = ""
    seeds: tuple[int, ...] = ()
    axes: tuple[Axis, ...] = ()
    lines: Mapping[str, int] = field(default_factory=dict)
    scenario_line: int = 1
    set_line: int = 1

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return re.sub(r"[^A-Za-z0-9._-]+", "-", Path(self.path).stem) or "sweep"

    def combinations(self) -> tuple[Settings, ...]:
        """The product of all parameters; the last one changes fastest. One empty combination without any."""
        columns = [[(axis.key, value) for value in axis.values] for axis in self.axes]
        return tuple(itertools.product(*columns))

    def overrides(self, settings: Settings) -> tuple[str, ...]:
        """``settings`` and the schedulers as ``--set`` would give them."""
        schedulers = (f"schedulers={self.schedulers}",) if self.schedulers else ()
        return (*schedulers, *(f"{key}={value}" for key, value in settings))


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One run: a combination with a seed. ``fingerprint`` stands for everything that decides what it finds."""

    scenario: str
    engine: str
    overrides: tuple[str, ...]
    settings: Settings
    seed: int
    fingerprint: str = ""

    @property
    def name(self) -> str:
        """``fabric.port_rate=100Gbps,seed=1``: fit for a folder, and the same in whatever order the keys are written.

        What a folder's name cannot hold is replaced or cut off, and told apart by a digest.
        """
        text = ",".join([*(f"{key}={value}" for key, value in sorted(self.settings)), f"seed={self.seed}"])
        safe = re.sub(r"[^A-Za-z0-9._=,+-]+", "-", text)
        if safe == text and len(safe) <= LONGEST_NAME:
            return safe
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        return f"{safe[: LONGEST_NAME - 9]}-{digest}"


@dataclass(frozen=True, slots=True)
class Result:
    """One scheduler in one point; ``points`` of utilisation are against the run's first scheduler, None for itself.

    ``mean_jct_s`` is over the run's jobs, None if one has none.
    """

    scheduler: str
    verdict: str
    gpu_utilization: float
    points: float | None
    mean_jct_s: float | None
    work_flop: float
    duration_s: float


@dataclass(frozen=True, slots=True)
class PointOutcome:
    """What came of a point: ``results``, and the name of its run directory; or a ``problem`` with its exit status.

    ``failed_checks``: those checks of the scenario that do not hold.
    """

    results: tuple[Result, ...] = ()
    directory: str = ""
    failed_checks: tuple[str, ...] = ()
    problem: str = ""
    status: int = EXIT_OK

    @property
    def believable(self) -> bool:
        """Whether it came to its end and every verdict is ``ok``."""
        return not self.problem and all(result.verdict == "ok" for result in self.results)

    def exit_status(self, allow_degraded: bool = False) -> int:
        """The status that ``testbed run`` would end with."""
        if self.status or self.problem:
            return self.status
        if not self.believable and not allow_degraded:
            return EXIT_NOT_BELIEVABLE
        return EXIT_CHECK_FAILED if self.failed_checks else EXIT_OK


Runner = Callable[[SweepPoint, Path], PointOutcome]
"""(point, folder to put its run directory into) -> what came of it."""


def outcome_of(summary: Mapping[str, Any], directory: str) -> PointOutcome:
    """What the document ``summary.json`` of the run ``directory`` says; ``KeyError`` or ``TypeError`` if damaged."""
    checks = summary.get("checks", ())
    return PointOutcome(
        tuple(_result(run, summary["comparison"].get(run["scheduler"])) for run in summary["runs"]),
        directory,
        tuple(str(check["check"]) for check in checks if not check["passed"]),
    )


def _result(run: Mapping[str, Any], against: object) -> Result:
    times = [job["jct_s"] for job in run["jobs"]]
    complete = bool(times) and None not in times
    return Result(
        scheduler=str(run["scheduler"]),
        verdict=str(run["fidelity"]["verdict"]),
        gpu_utilization=float(run["gpu_utilization"]),
        points=against["gpu_utilization_points"] if isinstance(against, Mapping) else None,
        mean_jct_s=sum(times) / len(times) if complete else None,
        work_flop=float(run["work_flop"]),
        duration_s=float(run["duration_s"]),
    )


def worst(statuses: Mapping[str, int]) -> int:
    """The status of a sweep from those of its points: what failed weighs more than what is only not believable."""
    return min((status for status in statuses.values() if status), default=EXIT_OK)
