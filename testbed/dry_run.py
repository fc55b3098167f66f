"""What a run would do, computed without running it: decisions, scale, load and time.

Decisions come from the controller's own code, with the jobs arriving in the order in which the
engine announces them, so they equal those of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from controller.decider import Decider
from controller.decision import Decision
from controller.schedulers import registry
from controller.schedulers.crux.intensity import profile
from testbed.errors import RunFailedError
from testbed.experiment.built_part import built_part_of
from testbed.experiment.capacity import ESTIMATES, Capacity
from testbed.experiment.contention import nothing_to_schedule
from testbed.experiment.demand import peak_demand
from testbed.experiment.experiment import Experiment
from testbed.experiment.left_out import left_out_of_files
from testbed.experiment.managed_footprint import stand_ins
from testbed.experiment.packet_work import packet_hops, simulation_s
from testbed.experiment.scale import grain, load_share
from testbed.machine.compiler_notice import slow_engine
from testbed.machine.datapaths import DatapathChoice
from testbed.metrics.job_metrics import MeaningfulLevels
from topologies.fabric import Fabric, Path
from workloads.analysis import Isolated, isolated
from workloads.job import Job
from workloads.managers.registry import GROUPS
from workloads.plugin_errors import PluginError

SCHEMA_VERSION: Final = 1

DEFAULT: Final = ESTIMATES["userspace"]
SET_UP_S: Final = 4.0
"""Seconds to bring a fabric up and down, as measured for 26 nodes; it depends little on the fabric."""


@dataclass(frozen=True)
class Collisions:
    """Which links inside the fabric carry more than one flow.

    ``links_by_flows``: number of flows (at least two) -> number of directed links that carry as many.
    ``worst`` is the one of them with most bytes per bit/s, None if no flows share a link.
    """

    links_by_flows: Mapping[int, int]
    worst: str | None
    worst_flows: int
    worst_jobs: tuple[str, ...]


def plan(
    experiments: Sequence[Experiment],
    capacity: Capacity = DEFAULT,
    rehearsed: bool = False,
    datapaths: Mapping[str, DatapathChoice] = MappingProxyType({}),
    engine: str = "emulation",
) -> dict[str, Any]:
    """The plan of a scenario, one experiment per scheduler, as one JSON-ready document in the scenario's own units.

    ``capacity`` is an estimate of what the machine forwards; ``rehearsed``: a run would measure it, and choose the
    scale by that. ``datapaths``: scheduler's label -> what would forward its packets. That of an emulation has an
    estimate of the wall-clock time, that of a simulation one of CPU time; the flow engine has neither, and no
    scale; ``slow_flow_engine`` is a line if the compiler is missing.
    Raises :class:`testbed.errors.RunFailedError` if a scheduler raises or its decision is invalid.
    """
    first, managed = experiments[0], experiments[0].managed
    if managed is None:
        schedulers = [_scheduler(experiment) for experiment in experiments]
    else:
        first = replace(first, jobs=stand_ins(managed, first.fabric))
        schedulers = [_undecided(replace(experiment, jobs=first.jobs)) for experiment in experiments]
    emulated = engine == "emulation"
    if not emulated:
        schedulers = [
            {**entry, **_computed(experiment, entry, engine)}
            for experiment, entry in zip(experiments, schedulers, strict=True)
        ]
    parts = {} if managed is None else {"manager": {point: getattr(managed, point) for point in GROUPS}}
    return {
        "schema_version": SCHEMA_VERSION,
        "scenario": first.name,
        "engine": engine,
        "seed": first.seed,
        "levels": first.levels,
        "fabric": _fabric(first.fabric),
        "jobs": [_job(job, first.fabric) for job in first.jobs],
        "datapaths": {scheduler: asdict(choice) for scheduler, choice in datapaths.items()},
        "scale": _scale(first, capacity) if engine != "flow" else None,
        "network": None if first.network is None else first.network.transport,
        "rehearsed": rehearsed,
        "not_built": built_part_of(first).left_out_of(first.fabric) if emulated else "",
        "left_out_of_files": left_out_of_files(first.jobs),
        "nothing_to_schedule": "" if managed else nothing_to_schedule(first.jobs, first.fabric),
        "slow_flow_engine": slow_engine(engine, first.sharing),
        "schedulers": schedulers,
        "estimated_s": _sum([entry["estimated_s"] for entry in schedulers]),
        **parts,
    }


def _sum(seconds: Sequence[float | None]) -> float | None:
    known = [each for each in seconds if each is not None]
    return sum(known) if len(known) == len(seconds) else None


def _computed(experiment: Experiment, entry: Mapping[str, Any], engine: str) -> dict[str, Any]:
    """What a simulation has to do, in packet hops, and the CPU time that takes; None where that is not known."""
    if engine != "simulation" or experiment.managed is not None:
        return {"packet_hops": None, "estimated_s": None}
    iteration_s = {job["name"]: job["iteration_s"] for job in entry["jobs"]}
    hops = packet_hops(experiment, final_decision(experiment).paths, iteration_s, entry["simulated_s"])
    return {"packet_hops": round(hops), "estimated_s": simulation_s(experiment, hops)}


def final_decision(experiment: Experiment) -> Decision:
    """The decision in force once every job has arrived and none has left."""
    name = experiment.scheduler.name
    try:
        scheduler = registry.create(name, experiment.scheduler.options, experiment.seed)
        name = scheduler.name
        decider = Decider(experiment.fabric, scheduler, experiment.levels, experiment.seed)
        for job in sorted(experiment.jobs, key=lambda job: max(0.0, job.start_s)):
            decider.arrive(job)
    except PluginError as error:
        raise RunFailedError(str(error)) from error
    except Exception as error:  # what is built in, too, may raise
        text = f"{type(error).__name__}: {' '.join(str(error).split())}"
        raise RunFailedError(f"scheduler {name} raised {text}") from error
    return decider.decision


def collisions(fabric: Fabric, jobs: Iterable[Job], paths: Mapping[str, Path]) -> Collisions:
    """Find the links that flows share under ``paths``, without host links and flows that have no path."""
    flows = Counter[str]()
    load: dict[str, float] = {}
    users: dict[str, dict[str, None]] = {}
    for job in jobs:
        for flow in job.flows:
            for link in paths.get(flow.id, ()):
                if fabric.links[link].kind != "host-tor" and flow.bytes > 0:
                    flows[link] += 1
                    load[link] = load.get(link, 0.0) + flow.bytes / fabric.links[link].capacity
                    users.setdefault(link, {})[job.name] = None
    shared = [link for link, count in flows.items() if count > 1]
    worst = max(shared, key=lambda link: load[link], default=None)
    by_flows = dict(sorted(Counter(flows[link] for link in shared).items()))
    return Collisions(by_flows, worst, flows[worst] if worst else 0, tuple(users[worst]) if worst else ())


def estimate(experiment: Experiment, alone: Mapping[str, Isolated]) -> float:
    """Seconds of wall clock of an emulation, each job as if alone on its paths."""
    return simulated(experiment, alone) * experiment.scale.time + SET_UP_S


def simulated(experiment: Experiment, alone: Mapping[str, Isolated]) -> float:
    """Seconds, undilated, until the last job has completed its iterations, each job as if alone on its paths."""
    measure = experiment.measure
    wanted = measure.warmup + measure.iterations
    ends = [job.start_s + min(wanted, job.iterations) * alone[job.name].iteration_s for job in experiment.jobs]
    return min(max(ends, default=0.0), measure.time_limit_s)


def _fabric(fabric: Fabric) -> dict[str, Any]:
    cables = Counter(link.kind for link in fabric.network_links)
    tiers = Counter(switch.tier for switch in fabric.switches.values())
    return {
        "name": fabric.name,
        "hosts": len(fabric.hosts),
        "gpus": len(fabric.gpus),
        "nics": len(fabric.nics),
        "ports": len(fabric.ports),
        "switches": {"tor": tiers["tor"], "agg": tiers["agg"], "core": tiers["core"]},
        "cables": {kind: count // 2 for kind, count in cables.items()},
    }


def _job(job: Job, fabric: Fabric) -> dict[str, Any]:
    alone, found = isolated(job, fabric), profile(job, fabric)
    return {
        "name": job.name,
        "model": job.model,
        "gpus": len(job.gpus),
        "hosts": len({fabric.host_of_gpu[gpu] for gpu in job.gpus}),
        "flows": len(job.flows),
        "start_s": job.start_s,
        "iteration_s": alone.iteration_s,
        "compute_s": alone.compute_s,
        "communication_s": alone.communication_s,
        "gpu_utilization": alone.utilization,
        "intensity": found.intensity,
    }


def _scale(experiment: Experiment, capacity: Capacity) -> dict[str, Any]:
    scale, fabric = experiment.scale, experiment.fabric
    cut = grain(experiment.jobs, scale)
    rates = {
        kind: sorted({scale.rate(link.capacity) for link in fabric.network_links if link.kind == kind})
        for kind in dict.fromkeys(link.kind for link in fabric.network_links)
    }
    return {
        "bandwidth": scale.bandwidth,
        "time": scale.time,
        "mtu": scale.mtu,
        "link_rates_bps": rates,
        "estimated_load_share": load_share((peak_demand(fabric, experiment.jobs),), scale, capacity),
        "coarse": cut.worst if cut.share < 1 else "",
        "dilation_wanted": cut.dilation_wanted(scale) if cut.share < 1 else scale.time,
    }


def _scheduler(experiment: Experiment) -> dict[str, Any]:
    decision = final_decision(experiment)
    if experiment.spreads:
        flows = tuple(flow.id for job in experiment.jobs for flow in job.flows)
        decision = replace(decision, paths={}, hashed=flows)
    alone = {job.name: _alone(job, experiment.fabric, decision) for job in experiment.jobs}
    levels = MeaningfulLevels(experiment.jobs, experiment.levels)
    met = collisions(experiment.fabric, experiment.jobs, decision.paths)
    return {
        "scheduler": experiment.scheduler.label,
        "scheduler_name": experiment.scheduler.name,
        "options": dict(experiment.scheduler.options),
        "jobs": [
            {
                "name": job.name,
                "level": levels.of(job, decision),
                "iteration_s": alone[job.name].iteration_s,
                "gpu_utilization": alone[job.name].utilization,
            }
            for job in experiment.jobs
        ],
        "hashed_flows": len(decision.hashed),
        "links_by_flows": {str(count): links for count, links in met.links_by_flows.items()},
        "worst_link": met.worst and {"link": met.worst, "flows": met.worst_flows, "jobs": list(met.worst_jobs)},
        "simulated_s": simulated(experiment, alone),
        "estimated_s": estimate(experiment, alone),
    }


def _undecided(experiment: Experiment) -> dict[str, Any]:
    """Under a manager nothing is decided before jobs arrive: only the time is estimated, with GPUs never idle."""
    alone = {job.name: isolated(job, experiment.fabric) for job in experiment.jobs}
    held = sum(len(job.gpus) * job.iterations * alone[job.name].iteration_s for job in experiment.jobs)
    packed_s = min(held / len(experiment.fabric.gpus), experiment.measure.time_limit_s)
    simulated_s = max(simulated(experiment, alone), packed_s)
    return {
        "scheduler": experiment.scheduler.label,
        "scheduler_name": experiment.scheduler.name,
        "options": dict(experiment.scheduler.options),
        "jobs": [],
        "hashed_flows": 0,
        "links_by_flows": {},
        "worst_link": None,
        "simulated_s": simulated_s,
        "estimated_s": simulated_s * experiment.scale.time + SET_UP_S,
    }


def _alone(job: Job, fabric: Fabric, decision: Decision) -> Isolated:
    """Alone on the decided paths; if the switches choose a path, as if no two flows of the job shared a link."""
    paths = decision.paths
    return isolated(job, fabric, paths if all(flow.id in paths for flow in job.flows) else None)
