"""Experiments, decisions and runs as JSON-ready values and back, in the form of :mod:`controller.service.json_codec`.

What goes back in may raise ``ValueError``, ``KeyError`` or ``TypeError``, which the reader of a file
turns into one clear line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from controller.decision import Decision
from controller.service.consistency import check_fabric, check_job
from controller.service.json_codec import decode, encode
from testbed.experiment.experiment import Experiment
from testbed.experiment.scheduler_choice import SchedulerChoice
from testbed.results.record import (
    AloneRow,
    DecisionRow,
    Fidelity,
    IterationRow,
    LinkRow,
    ManagedRecord,
    MessageRow,
    RequestRow,
    RunRecord,
    Window,
)
from topologies.network.load_balancing import LOAD_BALANCING
from workloads.job import Job

_SCHEDULER: Final = {"scheduler": {"name": "", "options": {}, "label": ""}}
_NOT_SHARED: Final = (*_SCHEDULER, "datapath")
"""Keys of an experiment that differ between the schedulers of a scenario."""
_EVIDENCE: Final[Mapping[str, tuple[Any, int]]] = {
    "cpu": (tuple[tuple[float, ...], ...], 5),
    "run_delay": (tuple[tuple[float, ...], ...], 5),
    "timers": (tuple[tuple[float, ...], ...], 2),
    "standstills": (tuple[tuple[str, float, float], ...], 3),
}
"""Rows over time in ``environment``, which are drawn: their type, and how many columns they have at least."""
_CHANGES: Final = ("levels_changed", "paths_changed")
_OWN_KEYS: Final = ("time_s", "cause", "confirmed_s", *_CHANGES)


def experiment_to(experiment: Experiment) -> dict[str, Any]:
    """Everything of an experiment but its scheduler and the datapath of that."""
    return {key: value for key, value in encode(experiment).items() if key not in _NOT_SHARED}


def experiment_from(document: Mapping[str, Any]) -> Experiment:
    """The experiment back; its scheduler is empty, its datapath the default one. Its fabric and jobs fit together."""
    experiment = decode(Experiment, {**document, **_SCHEDULER}, "experiment")
    check_fabric(experiment.fabric)
    for job in experiment.jobs:
        check_job(job)
    return experiment


def decision_row_to(row: DecisionRow) -> dict[str, Any]:
    """A decision with its time and cause, as in ``decisions.json``."""
    return {**{key: getattr(row, key) for key in _OWN_KEYS}, **encode(row.decision)}


def decision_row_from(document: Mapping[str, Any]) -> DecisionRow:
    """The decision back."""
    columns = {key: value for key, value in document.items() if key not in _OWN_KEYS}
    return DecisionRow(
        time_s=decode(float, document["time_s"], "time_s"),
        cause=decode(str, document["cause"], "cause"),
        confirmed_s=decode(float, document["confirmed_s"], "confirmed_s"),
        decision=decode(Decision, columns, "decision"),
        **{key: decode(int, document.get(key, 0), key) for key in _CHANGES},
    )


def run_to(record: RunRecord) -> dict[str, Any]:
    """What a record holds beside its rows and decisions."""
    rest = {"windows": record.windows, "fidelity": record.fidelity, "environment": record.environment}
    choice = {"scheduler": record.scheduler, "scheduler_name": record.choice.name, "options": record.choice.options}
    if record.choice.load_balancing is not None:
        choice["load_balancing"] = record.choice.load_balancing
    head = {**encode(choice), "engine": record.engine, "duration_s": record.duration_s}
    managed = {} if record.managed is None else {"managed": encode(record.managed)}
    programs = {"programs": encode(record.programs)} if record.programs else {}
    return {**head, **{key: encode(value) for key, value in rest.items()}, **managed, **programs}


def run_from(
    document: Mapping[str, Any],
    *,
    iterations: Sequence[IterationRow],
    links: Sequence[LinkRow],
    decisions: Sequence[DecisionRow],
    messages: Sequence[MessageRow] = (),
    alone: Sequence[AloneRow] = (),
    requests: Sequence[RequestRow] = (),
) -> RunRecord:
    """The record back from its parts."""
    programs = decode(tuple[Job, ...], document.get("programs", []), "programs")
    for job in programs:
        check_job(job)
    return RunRecord(
        choice=_choice(document),
        engine=decode(str, document["engine"], "engine"),
        duration_s=decode(float, document["duration_s"], "duration_s"),
        windows=decode(dict[str, Window], document["windows"], "windows"),
        iterations=tuple(iterations),
        links=tuple(links),
        decisions=tuple(decisions),
        fidelity=decode(Fidelity, document["fidelity"], "fidelity"),
        environment=_environment(document["environment"]),
        managed=decode(ManagedRecord, document["managed"], "managed") if "managed" in document else None,
        programs=programs,
        messages=tuple(messages),
        alone=tuple(alone),
        requests=tuple(requests),
    )


def _choice(document: Mapping[str, Any]) -> SchedulerChoice:
    """The scheduler of a run; before there were labels, its name was all that was recorded."""
    label = decode(str, document["scheduler"], "scheduler")
    name = decode(str, document.get("scheduler_name", label), "scheduler_name")
    given = document.get("load_balancing")
    balancing = next((each for each in LOAD_BALANCING if each == given), None)
    if balancing is None and given is not None:
        raise ValueError(f"load_balancing is {given!a}, expected one of {', '.join(LOAD_BALANCING)}")
    return SchedulerChoice(name, decode(dict[str, object], document.get("options", {}), "options"), label, balancing)


def _environment(data: object) -> dict[str, object]:
    """What a run left beside its rows; of what is not drawn anything goes."""
    environment = decode(dict[str, object], data, "environment")
    for name, (kind, columns) in _EVIDENCE.items():
        rows: tuple[tuple[object, ...], ...] = decode(kind, environment.get(name, []), f"environment.{name}")
        if any(len(row) < columns for row in rows):
            raise ValueError(f"environment.{name}: expected {columns} columns")
    network = decode(dict[str, object], environment.get("network", {}), "environment.network")
    decode(dict[str, dict[str, float]], network.get("by_job", {}), "environment.network.by_job")
    stretches = environment.get("link_stretches", {})
    decode(dict[str, tuple[tuple[float, float, float], ...]], stretches, "environment.link_stretches")
    decode(dict[str, tuple[float, float, float]], environment.get("link_rates", {}), "environment.link_rates")
    return environment
