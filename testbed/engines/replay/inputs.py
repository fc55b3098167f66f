"""From a trace and a fabric to what a replay takes: requests with models, and the jobs they become on GPUs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Final
from weakref import WeakValueDictionary

from controller.schedulers.crux.intensity import profile
from testbed.engines.replay.running_job import Builder, ReplayRequest
from topologies.clos import clos
from topologies.double_sided import double_sided
from topologies.fabric import Fabric
from workloads.build import JobSpec
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


def builder(fabric: Fabric, volume: float = 1.0, channels: int = 1) -> Builder:
    """Return what makes a job of a request on its GPUs.

    It sends ``volume`` times the bytes of its model, through so many ``channels`` per pair of ports.
    """

    shapes = _shapes(fabric, volume, channels)
    return lambda request, gpus: shapes.job(request.name, request.model, gpus)


def _shapes(fabric: Fabric, volume: float, channels: int = 1) -> JobShapes:
    """Those of all who build the same jobs on ``fabric`` at the same time."""
    key = (id(fabric), volume, channels)
    known = _SHAPES.get(key)
    if known is None:  # shapes hold their fabric, so no other one has that identity while they are known
        known = JobShapes(fabric, lambda name, model, gpus: _spec(name, model, gpus, volume, channels))
        _SHAPES[key] = known
    return known


_SHAPES: Final[WeakValueDictionary[tuple[int, float, int], JobShapes]] = WeakValueDictionary()


def _spec(name: str, model: str, gpus: tuple[str, ...], volume: float, channels: int = 1) -> JobSpec:
    sent = None if volume == 1.0 else volume * CATALOGUE[model].communication_bytes
    return JobSpec(name, model, placement=gpus, communication_bytes=sent, channels=channels)


def reference_times(fabric: Fabric, volume: float = 1.0) -> Callable[[ReplayRequest], float]:
    """Return request -> seconds of an iteration, alone, on GPUs that lie together; ``volume`` as in :func:`builder`."""

    shapes = _shapes(fabric, volume)

    @cache
    def iteration_s(model: str, gpus: int) -> float:
        return profile(shapes.job("job", model, fabric.gpus[:gpus]), fabric).iteration_s

    return lambda request: iteration_s(request.model, min(request.gpus, len(fabric.gpus)))


def stage_times(fabric: Fabric, volume: float = 1.0) -> Callable[[ReplayRequest], tuple[float, float]]:
    """Return request -> seconds of compute and of communication of an iteration, on GPUs that lie together.

    ``volume`` as in :func:`builder`.
    """

    shapes = _shapes(fabric, volume)

    @cache
    def times(model: str, gpus: int) -> tuple[float, float]:
        job = shapes.job("job", model, fabric.gpus[:gpus])
        return job.compute_s, profile(job, fabric).communication_s

    return lambda request: times(request.model, min(request.gpus, len(fabric.gpus)))
