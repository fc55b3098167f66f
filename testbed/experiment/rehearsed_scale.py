"""The scale of a run from its rehearsal, and that scale as the run's files have it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from testbed.experiment.demand import BIN_S, Demand
from testbed.experiment.experiment import Experiment, Scale
from testbed.experiment.managed_footprint import stand_ins
from testbed.experiment.rehearsal import Rehearsal
from testbed.experiment.scale import MANAGED_SHARE, choose_scale, finest
from testbed.results.record import RunRecord
from topologies.datapath import Datapath

KEY: Final = "scale"
"""In the environment of a record."""


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


def rehearsed_scale(experiment: Experiment, rehearsal: Rehearsal, demands: Sequence[Demand]) -> Scale:
    """The least shrunk scale at which the busiest tenth of a second of every demand leaves CPU enough.

    ``CannotRunError`` where even the largest dilation leaves messages too few packets.
    """
    managed, capacity = experiment.managed, rehearsal.capacity
    jobs = experiment.jobs if managed is None else stand_ins(managed, experiment.fabric)
    share = 1.0 if managed is None else MANAGED_SHARE
    capacity = capacity.part(share)
    scale = choose_scale(experiment.fabric, jobs, capacity, demands)
    return finest(scale, experiment.fabric, capacity, demands)


def scale_document(scale: Scale, rehearsal: Rehearsal | None, demands: Sequence[Demand]) -> dict[str, object]:
    """The scale of a run, and the evidence that chose it, for the record's environment."""
    if rehearsal is None:
        return {KEY: asdict(scale)}
    needed = {demand.scheduler: _visits(demand, scale, rehearsal.datapath) for demand in demands}
    evidence = {**rehearsal.document(), "needed_visits_per_s": needed, "disturbed": rehearsal.disturbed}
    return {KEY: asdict(scale), "rehearsal": evidence}


def _visits(demand: Demand, scale: Scale, datapath: Datapath) -> float:
    """Visits per second in the busiest tenth of a second of ``demand`` at ``scale``."""
    return round(demand.busiest(BIN_S, datapath) / scale.bandwidth / scale.packet_bits, 1)


def scale_of(environment: Mapping[str, Any]) -> Scale | None:
    """The scale that a record's environment names; None if it names none."""
    found = environment.get(KEY)
    return None if found is None else Scale(float(found["bandwidth"]), float(found["time"]), int(found["mtu"]))


def rehearsal_record(experiment: Experiment, environment: Mapping[str, object]) -> RunRecord:
    """The record of a rehearsal after which nothing was run."""
    return RunRecord(
        choice=experiment.scheduler,
        engine="emulation",
        duration_s=0.0,
        windows={},
        iterations=(),
        links=(),
        decisions=(),
        environment=dict(environment),
    )
