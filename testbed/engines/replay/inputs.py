"""From a trace and a fabric to what a replay takes: requests with models, and the jobs they become on GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from controller.schedulers.crux.intensity import Profile, profile
from testbed.engines.replay.running_job import ReplayRequest
from topologies.clos import clos
from topologies.double_sided import double_sided
from topologies.fabric import Fabric
from workloads.build import JobSpec
from workloads.job import Job
from workloads.job_shapes import JobShapes
from workloads.models.catalogue import CATALOGUE
from workloads.traces.job_failures import STATUS_OF_FATE
from workloads.traces.models import assign_models
from workloads.traces.trace import Trace

TORS, AGGREGATIONS, HOSTS_PER_TOR = 173, 16, 2
PAIRS, DOUBLE_SIDED_HOSTS = 3, 252
PORT_RATE = 100e9
NICS, PORTS, GPUS = 4, 2, 8


def clos_of_the_paper(scale: int = 1) -> Fabric:
    """Clos of 173 ToRs and 16 aggregation switches (Crux section 6.1), ``scale`` times as many ToRs.

    The paper gives the counts. Here: two hosts of 8 GPUs under each ToR (2,768 GPUs), hosts as in its testbed
    (4 NICs of 2 x 100 Gb/s), one cable of 100 Gb/s from each ToR to each aggregation switch, which is as much as
    its hosts can send: no oversubscription.
    """
    per_tor = HOSTS_PER_TOR * NICS * PORTS * PORT_RATE
    return clos(
        hosts=TORS * HOSTS_PER_TOR * scale,
        gpus_per_host=GPUS,
        nics_per_host=NICS,
        ports_per_nic=PORTS,
        tors=TORS * scale,
        aggregations=AGGREGATIONS,
        port_rate=PORT_RATE,
        fabric_rate=per_tor / AGGREGATIONS,
    )


def double_sided_of_the_paper() -> Fabric:
    """The double-sided fabric of 6 ToRs, 12 aggregation and 32 core switches (Crux section 6.1).

    The paper gives the counts and eight links from a host to two ToRs. Here: 252 hosts of 8 GPUs (2,016 GPUs);
    a ToR and an aggregation switch are joined by one bonded cable that carries its share of all that the hosts
    under the ToR can send.
    """
    per_tor = DOUBLE_SIDED_HOSTS // PAIRS * NICS * PORT_RATE
    return double_sided(hosts=DOUBLE_SIDED_HOSTS, fabric_rate=per_tor / 12, core_rate=6 * per_tor / 12 / 32)


def requests_of(trace: Trace, seed: int) -> Iterator[ReplayRequest]:
    """The jobs of ``trace`` in order of submission, each with a model: its own, or one drawn by ``seed``."""
    models = assign_models(trace, seed)
    for job in trace.jobs:
        yield ReplayRequest(
            job.name,
            job.submit_s,
            job.duration_s,
            job.gpus,
            models[job.name],
            job.virtual_cluster,
            job.user,
            job.min_gpus,
            job.max_gpus,
            job.opportunistic,
            job.attempts,
            STATUS_OF_FATE[job.fate],
        )


class TraceJobs:
    """The jobs of a trace's requests on ``fabric``: built on their GPUs, and timed on GPUs that lie together.

    A job sends ``volume`` times the bytes of its model, through so many ``channels`` per pair of ports.
    """

    def __init__(self, fabric: Fabric, volume: float = 1.0, channels: int = 1) -> None:
        self._fabric = fabric
        self._shapes = JobShapes(fabric, lambda name, model, gpus: _spec(name, model, gpus, volume, channels))
        self._together: dict[tuple[str, int], tuple[Job, Profile]] = {}

    def build(self, request: ReplayRequest, gpus: tuple[str, ...]) -> Job:
        """Return the job of ``request`` on ``gpus``."""
        return self._shapes.job(request.name, request.model, gpus)

    def stage_times(self, request: ReplayRequest) -> tuple[float, float]:
        """Return seconds of compute and of communication of an iteration, alone, on GPUs that lie together."""
        job, alone = self._alone_together(request)
        return job.compute_s, alone.communication_s

    def reference_s(self, request: ReplayRequest) -> float:
        """Return seconds of an iteration, alone, on GPUs that lie together."""
        return self._alone_together(request)[1].iteration_s

    def _alone_together(self, request: ReplayRequest) -> tuple[Job, Profile]:
        key = request.model, min(request.gpus, len(self._fabric.gpus))
        if key not in self._together:
            job = self._shapes.job("job", request.model, self._fabric.gpus[: key[1]])
            self._together[key] = job, profile(job, self._fabric)
        return self._together[key]


def _spec(name: str, model: str, gpus: tuple[str, ...], volume: float, channels: int) -> JobSpec:
    sent = None if volume == 1.0 else volume * CATALOGUE[model].communication_bytes
    return JobSpec(name, model, placement=gpus, communication_bytes=sent, channels=channels)
