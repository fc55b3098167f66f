"""What each job of a run would have lost with nothing beside it: the same job, simulated by itself.

The jobs of an emulation are simulated packet by packet at its scale, those of other engines as these ran them: same
draws, stragglers, experts and constants. A job has the paths that it had in the run, at the same times;
levels, rates and shifts are decided because of other jobs, so a job alone has none. Packets that switches spread take
all paths alike: a job's own connections do not collide then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import ClassVar, Final

from controller.decision import ClusterView, Decision, Event, Scheduler
from testbed.engines.common.iterations import iteration_rows
from testbed.engines.common.requests import answered_requests, with_decoding
from testbed.engines.flow.cluster import FlowCluster
from testbed.experiment.experiment import UNSCALED, Experiment
from testbed.experiment.network_model import AS_EMULATED
from testbed.results.path_history import PathsFrom, collides, own_link, own_links, path_history
from testbed.results.record import AloneRow, RunRecord
from topologies.fabric import Fabric
from workloads.job import Job

PATIENCE: Final = 4.0
"""A simulation ends without a result after so many times the duration of the run."""


class RecordedPaths(Scheduler):
    """Decides nothing: the flows have the paths that they had in a run."""

    name: ClassVar[str] = "recorded-paths"

    def __init__(self, history: Sequence[PathsFrom]) -> None:
        self._first = history[0] if history else PathsFrom(0.0, {})

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return the first paths."""
        return Decision(paths=self._first.paths if view.jobs else {})


def with_alone(record: RunRecord, experiment: Experiment) -> RunRecord:
    """Return ``record`` with a row for every iteration of its jobs, but for real programs: their compute is unknown."""
    stints = experiment.jobs if record.managed is None else record.managed.stints
    made = _iterations_made(record)
    begun = _begun(record)
    rows: list[AloneRow] = []
    for job in stints:
        if job.external is None and made.get(job.name):
            history = path_history(job, record.decisions, begun[job.name])
            if history or not job.flows:
                limit_s = job.start_s + PATIENCE * record.duration_s
                rows += _alone(
                    replace(job, iterations=made[job.name]), history, _by_itself(experiment, record), limit_s
                )
    return replace(record, alone=tuple(rows))


def _iterations_made(record: RunRecord) -> dict[str, int]:
    made: dict[str, int] = {}
    for row in record.iterations:
        made[row.job] = max(made.get(row.job, 0), row.iteration + 1)
    return made


def _begun(record: RunRecord) -> dict[str, float]:
    begun: dict[str, float] = {}
    for row in record.iterations:
        begun[row.job] = min(begun.get(row.job, row.start_s), row.start_s)
    return begun


def _by_itself(experiment: Experiment, record: RunRecord) -> Experiment:
    """The experiment without its jobs and failures: recorded paths lead around failed links as they did in the run."""
    network, balancing = experiment.network, experiment.load_balancing
    if record.engine == "emulation":
        balancing = "spray-in-turn" if experiment.spreads else "hash"
        network = replace(AS_EMULATED, load_balancing=balancing)
    return replace(
        experiment, jobs=(), managed=None, failures=(), network=network, load_balancing=balancing, congestion=None
    )


def _alone(job: Job, history: Sequence[PathsFrom], where: Experiment, limit_s: float) -> list[AloneRow]:
    idle = _idle_gpu_s(job, history, where, limit_s)
    without = idle
    if not where.spreads and any(collides(each.paths, where.fabric) for each in history):
        apart = [PathsFrom(each.time_s, own_links(each.paths, where.fabric)) for each in history]
        without = _idle_gpu_s(job, apart, replace(where, fabric=_with_own_links(where.fabric, history)), limit_s)
    return [AloneRow(job.name, number, idle[number], without[number]) for number in idle if number in without]


def _with_own_links(fabric: Fabric, history: Sequence[PathsFrom]) -> Fabric:
    """``fabric`` with a copy of each link between switches for every flow that is ever led over it."""
    copies = {
        name: replace(fabric.links[link], name=name)
        for each in history
        for flow, path in each.paths.items()
        for link in path
        if fabric.links[link].kind != "host-tor"
        for name in [own_link(link, flow)]
    }
    return replace(fabric, links={**fabric.links, **copies})


def _idle_gpu_s(job: Job, history: Sequence[PathsFrom], where: Experiment, limit_s: float) -> Mapping[int, float]:
    """Iteration -> GPU-seconds in which the GPUs of ``job`` do not compute, with the whole fabric to itself."""
    experiment = replace(where, jobs=(job,))
    cluster = FlowCluster(experiment, RecordedPaths(history))
    for change in history[1:]:
        cluster.at(change.time_s, partial(_put_in_force, cluster, Decision(paths=change.paths)))
    while cluster.jobs.completed(job.name) < job.iterations and cluster.now <= limit_s:
        cluster.step()
    idle: dict[int, float] = {}
    plain = replace(experiment, scale=UNSCALED)
    busy = answered_requests(cluster.jobs.reports, plain, 0.0).busy
    for row in with_decoding(iteration_rows(cluster.jobs.reports, plain, 0.0, []), busy):
        idle[row.iteration] = idle.get(row.iteration, 0.0) + row.end_s - row.start_s - row.compute_s
    return idle


def _put_in_force(cluster: FlowCluster, decision: Decision, _late: float) -> None:
    cluster.carry_out(decision)
