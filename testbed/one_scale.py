"""All schedulers of a run at one scale: the first run's rehearsal chooses it, and the others take it.

A run that notices in its first seconds that it loads the machine too much ends there; then all begin again, one step
down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from testbed.engines.registry import Engine
from testbed.experiment.demand import Demand, most_of
from testbed.experiment.experiment import Experiment, Scale
from testbed.experiment.rehearsed_scale import scale_of
from testbed.experiment.scale import step_down
from testbed.experiment.scale_search import ScaleSearch, TooBusyError
from testbed.results.record import RunRecord
from topologies.datapath import Datapath
from workloads.job import Job

MOST_STEPS_DOWN: Final = 2
Progress = Callable[[dict[str, Any]], None]


@dataclass
class OneScale:
    """Runs experiments on ``engine``. With ``demands`` the scale of the first is an estimate.

    ``scale`` is what the last run had; ``evidence`` says what chose it, for the run's files. ``remark`` takes lines.
    """

    engine: Engine
    demands: Sequence[Demand]
    remark: Callable[[str], None]
    scale: Scale | None = None
    evidence: dict[str, Any] = field(default_factory=dict)
    steps_down: int = 0

    @property
    def measured(self) -> bool:
        """Whether the scale is chosen by what this machine carries, not given."""
        return bool(self.demands)

    def needs(self, scheduler: str, datapath: Datapath) -> float:
        """What ``scheduler`` asks of a machine at dilation 1; 0 where nothing is known of it."""
        return most_of((demand for demand in self.demands if demand.scheduler == scheduler), datapath, 1.0)

    def run(self, experiment: Experiment, folder: Path, progress: Progress) -> tuple[RunRecord, Experiment]:
        """Run ``experiment`` at the scale that there is; return the record, and the experiment as it was run.

        ``TooBusyError`` if the machine is too busy, as long as there is a step down to take.
        """
        if self.scale is not None:
            experiment = replace(experiment, scale=self.scale)
        noticing = self.measured and self.steps_down < MOST_STEPS_DOWN
        search = ScaleSearch(tuple(self.demands) if self.scale is None else (), noticing)
        record = self.engine.run(experiment, folder, progress, search)
        self._note(record.environment)
        record = replace(record, environment={**record.environment, **self.evidence})
        return record, experiment if self.scale is None else replace(experiment, scale=self.scale)

    def _note(self, environment: Mapping[str, Any]) -> None:
        """Take note of the scale that a run had, and of its rehearsal."""
        self.scale = scale_of(environment) or self.scale
        if "rehearsal" in environment:
            self.evidence["rehearsal"] = environment["rehearsal"]
            self.remark(environment["rehearsal"]["disturbed"])

    def go_down(self, error: TooBusyError, jobs: Sequence[Job]) -> str:
        """Take one step down; return a line about it."""
        self._note(error.environment)
        assert self.scale is not None
        before, self.scale = self.scale, step_down(jobs, self.scale)
        self.steps_down += 1
        self.evidence.setdefault("steps_down", []).append({"idle": error.idle, **asdict(before)})
        slower = "" if self.scale.time == before.time else f" and times x {self.scale.time:g}"
        return f"{error}: all runs begin again with rates / {self.scale.bandwidth:g}, not {before.bandwidth:g}{slower}"
