"""Which scheduler runs, with which options, under which label. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from topologies.network.load_balancing import LoadBalancing


@dataclass(frozen=True, slots=True)
class SchedulerChoice:
    """A scheduler as a scenario names it: the ``name`` that finds it, and its own ``options``.

    ``label`` is what checks, tables, run directories and comparisons call it, so that one scheduler can run several
    times with different options. It is the name where the scenario gives no other. ``load_balancing``: how packets of
    its run take paths, in place of what the scenario says of its network.
    """

    name: str
    options: Mapping[str, object] = field(default_factory=dict)
    label: str = ""
    load_balancing: LoadBalancing | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or self.name)

    @property
    def described(self) -> str:
        """The label, and what is behind it: ``no-priorities (crux, priorities: false)``; the name where that is all."""
        given = dict(self.options)
        if self.load_balancing is not None:
            given["load_balancing"] = self.load_balancing
        options = [f"{key}: {_shown(value)}" for key, value in given.items()]
        behind = [self.name, *options] if self.label != self.name else options
        return f"{self.label} ({', '.join(behind)})" if behind else self.label


def _shown(value: object) -> str:
    """An option's value as a scenario file says it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
