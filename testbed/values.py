"""Experiments, decisions and runs as JSON-ready values and back.

Only lists, dictionaries, strings, numbers and booleans come out; what goes back in may raise
``KeyError``, ``TypeError`` or ``ValueError``, which the reader of a file turns into one clear line.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from controller.decision import Decision
from testbed.experiment import Experiment, Measure, Scale
from testbed.record import DecisionRow, Fidelity, IterationRow, LinkRow, RunRecord, Window
from topologies.fabric import Fabric, Host, Link, Nic, Port, Switch
from workloads.job import Flow, Job, Phase, Straggler, Transfer


def plain(value: Any) -> Any:
    """Dataclasses, mappings and tuples of them as dictionaries and lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (item for item in dataclasses.fields(value) if item.init)
        return {item.name: plain(getattr(value, item.name)) for item in fields}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in (sorted(value) if isinstance(value, set | frozenset) else value)]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def experiment_to(experiment: Experiment) -> dict[str, Any]:
    """Everything of an experiment but its scheduler."""
    document: dict[str, Any] = plain(experiment)
    return {key: value for key, value in document.items() if key not in ("scheduler", "scheduler_options")}


def experiment_from(document: Mapping[str, Any]) -> Experiment:
    """The experiment back; its scheduler is empty."""
    return Experiment(
        name=str(document["name"]),
        fabric=fabric_from(document["fabric"]),
        jobs=tuple(job_from(job) for job in document["jobs"]),
        scheduler="",
        scheduler_options={},
        measure=Measure(**document["measure"]),
        scale=Scale(**document["scale"]),
        levels=int(document["levels"]),
        seed=int(document["seed"]),
    )


def fabric_from(document: Mapping[str, Any]) -> Fabric:
    """A fabric from what :func:`plain` made of it."""
    return Fabric(
        name=document["name"],
        hosts={name: Host(**_tuples(item)) for name, item in document["hosts"].items()},
        nics={name: Nic(**_tuples(item)) for name, item in document["nics"].items()},
        ports={name: Port(**item) for name, item in document["ports"].items()},
        switches={name: Switch(**item) for name, item in document["switches"].items()},
        links={name: Link(**item) for name, item in document["links"].items()},
        description=document["description"],
    )


def job_from(document: Mapping[str, Any]) -> Job:
    """A job from what :func:`plain` made of it."""
    fields = dict(document)
    fields["gpus"] = tuple(document["gpus"])
    fields["flows"] = tuple(Flow(**item) for item in document["flows"])
    fields["stragglers"] = tuple(Straggler(**item) for item in document["stragglers"])
    fields["phases"] = tuple(
        Phase(**{**item, "transfers": tuple(Transfer(**transfer) for transfer in item["transfers"])})
        for item in document["phases"]
    )
    return Job(**fields)


def decision_row_to(row: DecisionRow) -> dict[str, Any]:
    """A decision with its time and cause, as in ``decisions.json``."""
    head = {"time_s": row.time_s, "cause": row.cause, "confirmed_s": row.confirmed_s}
    return {**head, **plain(row.decision)}


def decision_row_from(document: Mapping[str, Any]) -> DecisionRow:
    """The decision back."""
    decision = Decision(
        paths={flow: tuple(path) for flow, path in document["paths"].items()},
        levels={key: int(level) for key, level in document["levels"].items()},
        rates=dict(document["rates"]),
        shifts=dict(document["shifts"]),
        notes=dict(document["notes"]),
    )
    return DecisionRow(float(document["time_s"]), str(document["cause"]), decision, float(document["confirmed_s"]))


def run_to(record: RunRecord) -> dict[str, Any]:
    """What a record holds beside its rows and decisions."""
    return {
        "scheduler": record.scheduler,
        "engine": record.engine,
        "duration_s": record.duration_s,
        "windows": plain(record.windows),
        "fidelity": plain(record.fidelity),
        "environment": plain(record.environment),
    }


def run_from(
    document: Mapping[str, Any],
    *,
    iterations: Sequence[IterationRow],
    links: Sequence[LinkRow],
    decisions: Sequence[DecisionRow],
) -> RunRecord:
    """The record back from its parts."""
    fidelity = {**document["fidelity"], "reasons": tuple(document["fidelity"]["reasons"])}
    return RunRecord(
        scheduler=str(document["scheduler"]),
        engine=str(document["engine"]),
        duration_s=float(document["duration_s"]),
        windows={job: Window(**window) for job, window in document["windows"].items()},
        iterations=tuple(iterations),
        links=tuple(links),
        decisions=tuple(decisions),
        fidelity=Fidelity(**fidelity),
        environment=dict(document["environment"]),
    )


def _tuples(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in document.items()}
