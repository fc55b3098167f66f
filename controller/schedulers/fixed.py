"""Levels, rates and shifts exactly as written in the scenario: for experiments that set them by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Final

from controller.decision import ClusterView, Decision, Event, Scheduler
from controller.schedulers.crux.scheduler import Crux
from controller.schedulers.ecmp import Ecmp
from topologies.units import parse_rate, parse_time
from workloads.job import Job

_PATHS: Final = ("ecmp", "least-loaded")


class Fixed(Scheduler):
    """Levels, rates and shifts as its options say, paths as ECMP or Crux would choose them.

    ``levels``: job name or flow id -> level, 0 served first; what it does not name is at the lowest
    level. ``rates``: job name or flow id -> rate of each flow (``50Gbps``). ``shifts`` and ``periods``:
    job name -> time (``0.2s``). ``paths``: ``ecmp``, or ``least-loaded`` for the path selection of Crux
    (section 4.1). Raises ``ValueError`` for anything else; ``decide`` does for a level that does not exist.
    """

    name: ClassVar[str] = "fixed"
    summary: ClassVar[str] = "levels, rates and shifts as its options say, paths by hash or the least loaded ones"
    decides: ClassVar[tuple[str, ...]] = ("paths", "levels", "rates", "shifts")
    source: ClassVar[str] = "the scenario file"

    def __init__(
        self,
        *,
        levels: Mapping[str, int] | None = None,
        paths: str = "ecmp",
        rates: Mapping[str, str] | None = None,
        shifts: Mapping[str, str] | None = None,
        periods: Mapping[str, str] | None = None,
    ) -> None:
        self._levels = _checked({} if levels is None else levels)
        self._rates = _quantities("rates", "job names or flow ids to rates", rates, parse_rate)
        self._shifts = _quantities("shifts", "job names to times", shifts, parse_time)
        self._periods = _quantities("periods", "job names to times", periods, parse_time)
        if paths not in _PATHS:
            raise ValueError(f"option 'paths' of fixed must be one of {', '.join(_PATHS)}, not '{paths}'")
        self._router: Scheduler = Ecmp() if paths == "ecmp" else Crux(priorities=False)

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return a path per flow, and what was given for the jobs and flows that are there."""
        for name, level in self._levels.items():
            if level >= view.level_count:
                raise ValueError(f"level {level} of '{name}' does not exist, expected 0 to {view.level_count - 1}")
        present = view.jobs.keys() | {flow.id for flow in view.flows}
        return Decision(
            paths=self._router.decide(view, event).paths,
            levels={name: level for name, level in self._levels.items() if name in present},
            rates={flow: rate for job in view.jobs.values() for flow, rate in self._rates_of(job).items()},
            shifts={name: shift for name, shift in self._shifts.items() if name in view.jobs},
            periods={name: period for name, period in self._periods.items() if name in view.jobs},
        )

    def _rates_of(self, job: Job) -> dict[str, float]:
        """Flow id -> rate: its own, else its job's."""
        given = {flow.id: self._rates.get(flow.id, self._rates.get(job.name)) for flow in job.flows}
        return {flow: rate for flow, rate in given.items() if rate is not None}


def _checked(levels: object) -> dict[str, int]:
    """A copy of the option ``levels``; ``ValueError`` names the value that is no level."""
    if not isinstance(levels, Mapping):
        raise ValueError(f"option 'levels' of fixed must map job names or flow ids to levels, not '{levels}'")
    for name, level in levels.items():
        if isinstance(level, bool) or not isinstance(level, int) or level < 0:
            expected = "must be a whole number from 0"
            raise ValueError(f"level of '{name}' in option 'levels' of fixed {expected}, not '{level}'")
    return {str(name): level for name, level in levels.items()}


def _quantities(option: str, what: str, given: object, parse: Callable[[str], float]) -> dict[str, float]:
    """The option as numbers; ``ValueError`` names the value that is no quantity."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ValueError(f"option '{option}' of fixed must map {what}, not '{given}'")
    found: dict[str, float] = {}
    for name, text in given.items():
        try:
            found[str(name)] = parse(str(text))
        except ValueError as error:
            raise ValueError(f"'{name}' in option '{option}' of fixed: {error}") from error
    return found
