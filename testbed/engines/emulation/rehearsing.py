"""The rehearsal of a run: its own messages without pauses, at rising rates, on the network that is up.

Synthetic jobs stand in for real programs, and for jobs that a manager will place. When it is over the network is as
before: no job, no rule, links at any rate.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from controller.decision import Decision
from testbed.engines.emulation.infrastructure import Infrastructure, Tell
from testbed.engines.emulation.jobs.synthetic_jobs import SyntheticJobs
from testbed.engines.emulation.probes.sampler import Sampler
from testbed.engines.emulation.workers import serve_first
from testbed.errors import RunFailedError
from testbed.experiment.demand import SENDING_COST, Demand
from testbed.experiment.experiment import Experiment, Scale
from testbed.experiment.managed_footprint import stand_ins
from testbed.experiment.rehearsal import Rehearsal, Step, next_step
from testbed.experiment.rehearsed_scale import rehearsed_scale
from testbed.experiment.scale import fastest_scale
from testbed.results.record import LinkRow, RunRecord
from topologies.fabric import NETWORK_KINDS
from topologies.shaping import ETHERNET_HEADER, payload_share
from workloads.analysis import isolated
from workloads.job import Job

SAFE: Final = 2.0
"""The first rates are so many times lower than those of the estimate."""
STEP_S: Final = 1.0
SETTLE_S: Final = 0.3
IDLE_S: Final = 0.6
DRAIN_S: Final = 0.5
SHORTEST_S: Final = 0.2
"""Messages of an iteration that would take less than this are made longer, all alike: reports of iterations cost."""
ENDLESS: Final = 1_000_000


async def measured_scale(
    experiment: Experiment, infrastructure: Infrastructure, demands: Sequence[Demand], tell: Tell
) -> tuple[Rehearsal | None, Experiment]:
    """Rehearse, and give links the rates that follow; return what was seen, and the experiment at its new scale."""
    rehearsal = await rehearse(experiment, infrastructure, tell)
    if rehearsal is None:
        return None, experiment
    try:
        scale = rehearsed_scale(experiment, rehearsal, demands)
    except ValueError as error:
        raise RunFailedError(
            f"the scale cannot be measured: {error}; set scale: {{bandwidth: .., time: ..}}"
        ) from error
    await asyncio.to_thread(infrastructure.network.reshape, scale.bandwidth, scale.mtu)
    return rehearsal, replace(experiment, scale=scale)


def record_without_run(experiment: Experiment, environment: dict[str, object]) -> RunRecord:
    """The record of a rehearsal after which nothing was run."""
    return RunRecord(
        choice=experiment.scheduler,
        engine="emulation",
        duration_s=0.0,
        windows={},
        iterations=(),
        links=(),
        decisions=(),
        environment=environment,
    )


async def rehearse(experiment: Experiment, infrastructure: Infrastructure, tell: Tell) -> Rehearsal | None:
    """Measure what this machine carries of ``experiment``, whose scale is an estimate; None if no job sends anything.

    Raises ``RunFailedError`` or ``CommandError`` as a run does.
    """
    jobs = rehearsed_jobs(experiment)
    if not jobs:
        return None
    scale, fastest = experiment.scale, fastest_scale(experiment.fabric)
    # Messages are those of the estimate; windows are those of the fastest rates that may come.
    widest = Scale(fastest, scale.time * fastest / scale.bandwidth, scale.mtu)
    senders = SyntheticJobs(replace(experiment, scale=widest, jobs=jobs), infrastructure.workers)
    tell("rehearsal", note="jobs and rules")
    decision = await _announce(infrastructure, jobs)
    await asyncio.gather(*(senders.open(job, decision, steps=False) for job in jobs))
    infrastructure.network.datapath.make_room()
    with _not_behind_the_workers():
        rehearsal = await _measure(experiment, infrastructure, senders, jobs, tell)
    await _clear(infrastructure, senders, jobs)
    return rehearsal


def rehearsed_jobs(experiment: Experiment) -> tuple[Job, ...]:
    """The jobs to rehearse with: those that are there first, or all that fit beside each other, without pauses."""
    fabric = experiment.fabric
    known = experiment.jobs if experiment.managed is None else stand_ins(experiment.managed, fabric)
    sending = [job for job in known if any(phase.transfers for phase in job.phases)]
    first = [job for job in sending if job.start_s <= 0.0] or sending
    taken: set[str] = set()
    found = []
    for job in first:
        if taken.isdisjoint(job.gpus):
            taken.update(job.gpus)
            found.append(_without_pauses(job, experiment))
    return tuple(found)


def _without_pauses(job: Job, experiment: Experiment) -> Job:
    phases = tuple(
        replace(phase, compute_s=0.0, inside=(), background=False, detached=False, awaits=(), members=())
        for phase in job.phases
        if phase.transfers
    )
    job = replace(job, phases=phases, start_s=0.0, iterations=ENDLESS, jitter=0.0, stragglers=(), external=None)
    alone = isolated(job, experiment.fabric).iteration_s * experiment.scale.time
    return job if alone >= SHORTEST_S else _longer(job, SHORTEST_S / max(alone, 1e-6))


def _longer(job: Job, factor: float) -> Job:
    phases = tuple(
        replace(
            phase,
            transfers=tuple(replace(t, bytes=t.bytes * factor, lead=t.lead * factor) for t in phase.transfers),
        )
        for phase in job.phases
    )
    return replace(job, phases=phases)


@contextmanager
def _not_behind_the_workers() -> Iterator[None]:
    """Workers that take all of the CPU at rates too high must not keep this process from lowering them."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    serve_first(0)
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)


async def _announce(infrastructure: Infrastructure, jobs: Iterable[Job]) -> Decision:
    decision = Decision()
    for job in jobs:
        decision = (await infrastructure.controller.arrive(job, prepare=False)).decision
    await infrastructure.into_force()
    return decision


async def _clear(infrastructure: Infrastructure, senders: SyntheticJobs, jobs: Sequence[Job]) -> None:
    await asyncio.gather(*(senders.halt(job) for job in jobs))
    await asyncio.gather(*(senders.close(job, reset=True) for job in jobs))
    await asyncio.sleep(DRAIN_S)
    await infrastructure.put_fabric()
    await infrastructure.into_force()


async def _measure(
    experiment: Experiment,
    infrastructure: Infrastructure,
    senders: SyntheticJobs,
    jobs: Sequence[Job],
    tell: Tell,
) -> Rehearsal:
    network, fastest = infrastructure.network, fastest_scale(experiment.fabric)
    bandwidth, mtu = max(fastest, SAFE * experiment.scale.bandwidth), experiment.scale.mtu
    await asyncio.to_thread(network.reshape, bandwidth, mtu)
    meter = _Meter(experiment, infrastructure)
    try:
        tell("rehearsal", note="idle")
        steps = [await meter.step(bandwidth, mtu, IDLE_S)]
        begin = time.monotonic() + 0.05
        for job in jobs:
            senders.start(job, begin)
        while True:
            tell("rehearsal", note=f"rates / {bandwidth:.3g}, MTU {mtu}")
            await asyncio.sleep(SETTLE_S)
            steps.append(await meter.step(bandwidth, mtu, STEP_S))
            infrastructure.workers.check()
            following = next_step(steps, fastest)
            if following is None:
                return Rehearsal(experiment.datapath, tuple(steps))
            bandwidth, mtu = following
            await asyncio.to_thread(network.reshape, bandwidth, mtu)
    finally:
        meter.close()


class _Meter:
    """Reads what links send and where the CPU goes, with what a run watches itself with."""

    def __init__(self, experiment: Experiment, infrastructure: Infrastructure) -> None:
        self._experiment = experiment
        mtu = experiment.scale.mtu
        self._share = payload_share(mtu)  # the sampler takes every packet for one of this size
        self._sampler = Sampler(infrastructure.network, Scale(1.0, 1.0, mtu), time.monotonic())
        self._watching = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            self._sampler.probe.poll()
            self._sampler.order.poll()
            await asyncio.sleep(self._sampler.probe.interval_s)

    async def step(self, bandwidth: float, mtu: int, seconds: float) -> Step:
        """What happens in the next ``seconds``, with links at 1 / ``bandwidth`` and packets of ``mtu`` bytes."""
        self._sampler.sample(time.monotonic(), whole=True)
        rows, begin = len(self._sampler.links), time.monotonic()
        await asyncio.sleep(seconds)
        second = self._sampler.sample(time.monotonic(), whole=True)
        packet_hops = self._packet_hops(self._sampler.links[rows:], mtu) / (time.monotonic() - begin)
        others = second.stolen + second.foreign
        return Step(bandwidth, mtu, packet_hops, max(0.0, 1.0 - second.idle - others), others)

    def _packet_hops(self, rows: Sequence[LinkRow], mtu: int) -> float:
        """Full packets, those that leave hosts weighted by what they cost more."""
        fabric, weight = self._experiment.fabric, SENDING_COST[self._experiment.datapath]
        packets = 0.0
        for row in rows:
            link = fabric.links[row.link]
            if link.kind in NETWORK_KINDS:
                packets += (1.0 if link.source in fabric.switches else weight) * row.bytes / self._share
        return packets / (mtu + ETHERNET_HEADER)

    def close(self) -> None:
        """Stop watching."""
        self._watching.cancel()
        self._sampler.close()
