"""How a run comes by its scale: as given, or by a rehearsal; and what a run tells that finds it too much."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from testbed.errors import RunFailedError
from testbed.experiment.demand import Demand


@dataclass(frozen=True)
class ScaleSearch:
    """How a run comes by its scale.

    With ``demands``, what each scheduler's run will send, that of the experiment is an estimate, which a rehearsal
    replaces. ``noticing``: a run that loads the machine too much in its first seconds ends with ``TooBusyError``.
    ``only``: the rehearsal is all that is wanted, and the record has nothing else.
    """

    demands: tuple[Demand, ...] = ()
    noticing: bool = False
    only: bool = False


AS_GIVEN: Final = ScaleSearch()
"""The scale of the experiment is the run's."""


class TooBusyError(RunFailedError):
    """The first seconds left ``idle`` of the CPU, by the run's own load; ``environment`` is what a record would say."""

    def __init__(self, idle: float, environment: Mapping[str, Any]) -> None:
        super().__init__(f"the run's own load left {idle:.0%} of the CPU idle in its first seconds")
        self.idle = idle
        self.environment = environment
