"""The flow engine's answer to a task of ``testbed reproduce``: its entry of ``summary.json``, without run files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from testbed.api import prepare
from testbed.engines.common.isolated_runs import each_alone, isolates_jobs, side_by_side
from testbed.engines.flow.engine import FlowEngine
from testbed.experiment.experiment import Experiment, Scale, Sharing
from testbed.metrics.summary import summary
from testbed.reproduce.kept_runs import Task
from testbed.results.record import RunRecord

Entry = Mapping[str, Any]
AS_PACKETS: Final[Sharing] = "packets"
"""How an emulation's packets share links."""


def flow_experiment(task: Task, *changed: str) -> Experiment:
    """Return the experiment of ``task`` for the flow engine, with the options ``changed`` besides its own."""
    overrides = [*task.treatment.overrides, *changed, "checks=[]"]
    (experiment,) = prepare(task.scenario, engine="flow", overrides=overrides, seed=task.seed).experiments
    return experiment


def twin_experiment(task: Task, scale: Scale, sharing: Sharing = AS_PACKETS) -> Experiment:
    """Return the experiment of ``task`` for the flow engine; packets are those of an emulation at ``scale``."""
    at = f"{{bandwidth: {scale.bandwidth!r}, time: {scale.time!r}, mtu: {scale.mtu}}}"
    return flow_experiment(task, f"sharing={sharing}", f"scale={at}")


def flow_entry(experiment: Experiment) -> Entry:
    """Return the flow engine's entry of ``experiment``; ``RunFailedError`` as :class:`FlowEngine` raises it."""
    records = [record for _, record in flow_runs(experiment)]
    record = side_by_side(records) if len(records) > 1 else records[0]
    entry: Entry = summary(experiment, [record])["runs"][0]
    return entry


def flow_runs(experiment: Experiment) -> list[tuple[Experiment, RunRecord]]:
    """Return the flow engine's runs of ``experiment``: one, or one for each job where the scheduler isolates jobs."""
    parts = each_alone(experiment) if isolates_jobs(experiment) else (experiment,)
    with TemporaryDirectory(prefix="flow-") as log:
        return [(part, FlowEngine().run(part, Path(log), lambda _message: None)) for part in parts]
