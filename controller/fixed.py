"""Levels exactly as written in the scenario: for experiments that set priorities by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from controller.crux import Crux
from controller.decision import ClusterView, Decision, Event, Scheduler
from controller.ecmp import Ecmp

_PATHS: Final = ("ecmp", "least-loaded")


class Fixed:
    """Levels as its option says, paths as ECMP or Crux would choose them.

    ``levels``: job name or flow id -> level, 0 served first; what it does not name is at the lowest
    level. ``paths``: ``ecmp``, or ``least-loaded`` for the path selection of Crux (section 4.1).
    Raises ``ValueError`` for anything else; ``decide`` does for a level that does not exist.
    """

    name: ClassVar[str] = "fixed"
    summary: ClassVar[str] = "levels as its option says, paths by hash or the least loaded ones"
    decides: ClassVar[tuple[str, ...]] = ("paths", "levels")
    source: ClassVar[str] = "the scenario file"

    def __init__(self, *, levels: Mapping[str, int] | None = None, paths: str = "ecmp") -> None:
        self._levels = _checked({} if levels is None else levels)
        if paths not in _PATHS:
            raise ValueError(f"option 'paths' of fixed must be one of {', '.join(_PATHS)}, not '{paths}'")
        self._router: Scheduler = Ecmp() if paths == "ecmp" else Crux(priorities=False)

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return a path per flow, and those of the given levels whose job or flow is there."""
        for name, level in self._levels.items():
            if level >= view.levels:
                raise ValueError(f"level {level} of '{name}' does not exist, expected 0 to {view.levels - 1}")
        present = view.jobs.keys() | {flow.id for flow in view.flows}
        levels = {name: level for name, level in self._levels.items() if name in present}
        return Decision(paths=self._router.decide(view, event).paths, levels=levels)


def _checked(levels: object) -> dict[str, int]:
    """A copy of the option ``levels``; ``ValueError`` names what is no level."""
    if not isinstance(levels, Mapping):
        raise ValueError(f"option 'levels' of fixed must map job names or flow ids to levels, not '{levels}'")
    for name, level in levels.items():
        if isinstance(level, bool) or not isinstance(level, int) or level < 0:
            expected = "must be a whole number from 0"
            raise ValueError(f"level of '{name}' in option 'levels' of fixed {expected}, not '{level}'")
    return {str(name): level for name, level in levels.items()}
