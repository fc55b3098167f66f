"""The scale of a run from its rehearsal, and that scale as the run's files have it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from testbed.experiment.demand import Demand, most_of
from testbed.experiment.experiment import Experiment, Scale
from testbed.experiment.managed_footprint import stand_ins
from testbed.experiment.rehearsal import Rehearsal
from testbed.experiment.scale import MANAGED_SHARE, choose_scale, finest

KEY: Final = "scale"
"""In the environment of a record."""


def rehearsed_scale(experiment: Experiment, rehearsal: Rehearsal, demands: Sequence[Demand]) -> Scale:
    """The least shrunk scale at which the busiest second, and tenth of a second, of every demand leaves CPU enough.

    ``CannotRunError`` where even the largest dilation leaves messages too few packets.
    """
    managed, capacity = experiment.managed, rehearsal.capacity
    jobs = experiment.jobs if managed is None else stand_ins(managed, experiment.fabric)
    capacity = capacity.part(1.0 if managed is None else MANAGED_SHARE)
    scale = choose_scale(experiment.fabric, jobs, capacity, demands)
    return finest(scale, experiment.fabric, capacity, demands)


def scale_document(scale: Scale, rehearsal: Rehearsal | None, demands: Sequence[Demand]) -> dict[str, object]:
    """The scale of a run, and the evidence that chose it, for the record's environment."""
    if rehearsal is None:
        return {KEY: asdict(scale)}
    by_scheduler: dict[str, list[Demand]] = {}
    for demand in demands:
        by_scheduler.setdefault(demand.scheduler, []).append(demand)
    per_packet = scale.bandwidth * scale.packet_bits
    needed = {
        name: round(most_of(own, rehearsal.datapath, scale.time) / per_packet) for name, own in by_scheduler.items()
    }
    evidence = {**rehearsal.document(), "needed_packet_hops_per_s": needed, "disturbed": rehearsal.disturbed}
    return {KEY: asdict(scale), "rehearsal": evidence}


def scale_of(environment: Mapping[str, Any]) -> Scale | None:
    """The scale that a record's environment names; None if it names none."""
    found = environment.get(KEY)
    return None if found is None else Scale(float(found["bandwidth"]), float(found["time"]), int(found["mtu"]))
