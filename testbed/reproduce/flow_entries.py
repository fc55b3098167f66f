"""A task of ``testbed reproduce``, computed: its entry of ``summary.json``, without run files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal

from testbed.api import prepare
from testbed.engines.common.isolated_runs import each_alone, isolates_jobs, side_by_side
from testbed.engines.registry import create_engine
from testbed.experiment.experiment import Experiment, Scale, Sharing
from testbed.experiment.network_model import Buffers, Delays, NetworkModel
from testbed.metrics.summary import summary
from testbed.reproduce.kept_runs import Task
from testbed.results.record import RunRecord
from topologies.shaping import segment_size

Entry = Mapping[str, Any]
Twin = Literal["packets"] | Sharing
"""What stands beside an emulation: its packets, simulated; or flows that share links so."""
AS_PACKETS: Final[Twin] = "packets"
_NEVER_FULL: Final = 1e18


def flow_experiment(task: Task, *changed: str, twin: Twin = "max-min") -> Experiment:
    """Return the experiment of ``task`` for ``twin``, with the options ``changed`` besides its own."""
    shared = [] if twin == AS_PACKETS else [f"sharing={twin}"]
    overrides = [*task.treatment.overrides, *shared, *changed, "checks=[]"]
    (experiment,) = prepare(task.scenario, engine=engine_of(twin), overrides=overrides, seed=task.seed).experiments
    return experiment


def engine_of(twin: Twin) -> str:
    """The name of the engine that computes ``twin``."""
    return "simulation" if twin == AS_PACKETS else "flow"


def twin_experiment(task: Task, scale: Scale, twin: Twin = AS_PACKETS) -> Experiment:
    """Return the experiment of ``task`` for ``twin``; packets are those of an emulation at ``scale``."""
    at = f"{{bandwidth: {scale.bandwidth!r}, time: {scale.time!r}, mtu: {scale.mtu}}}"
    found = flow_experiment(task, f"scale={at}", twin=twin)
    if found.network is None or found.network.as_emulated:
        return found
    return replace(found, network=_with_emulated_packets(found.network, scale))


def _with_emulated_packets(network: NetworkModel, scale: Scale) -> NetworkModel:
    """Packets as large as in an emulation at ``scale``, buffers that are never full, and no delays but their own."""
    return replace(network, mtu=segment_size(scale.mtu), buffers=Buffers(size=_NEVER_FULL), delays=Delays(0.0, 0.0))


def flow_entry(experiment: Experiment) -> Entry:
    """Return the computed entry of ``experiment``; ``RunFailedError`` as the engine raises it."""
    records = [record for _, record in flow_runs(experiment)]
    record = side_by_side(records) if len(records) > 1 else records[0]
    entry: Entry = summary(experiment, [record])["runs"][0]
    return entry


def flow_runs(experiment: Experiment) -> list[tuple[Experiment, RunRecord]]:
    """Return the flow engine's runs of ``experiment``: one, or one for each job where the scheduler isolates jobs."""
    parts = each_alone(experiment) if isolates_jobs(experiment) else (experiment,)
    engine = create_engine("flow" if experiment.network is None else "simulation")
    with TemporaryDirectory(prefix="flow-") as log:
        return [(part, engine.run(part, Path(log), lambda _message: None)) for part in parts]
