"""A workload of Pollux's simulator under our managers: speeds follow from the placement as it measured them.

As there: 16 servers of 4 GPUs; a job's batch is fixed; its speed depends on how many of its GPUs each server has;
managers decide in rounds of 60 s.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Final

from topologies.clos import clos
from topologies.fabric import Fabric
from workloads.managers.account import JobOutcome
from workloads.managers.durations import Play, Speed, Told
from workloads.managers.jobs import Running, Waiting
from workloads.managers.registry import manager
from workloads.traces.simulators.pollux import PolluxJob, jobs
from workloads.traces.simulators.pollux_measurements import SERVER_GPUS, packed

SERVERS: Final = 16
ROUND_S: Final = 60.0
ON_ONE_GPU: Final = ("ncf",)
"""Applications that the authors' simulator gives one GPU, whatever would help them."""
POLICIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "optimus": {"round_s": ROUND_S, "restart_s": 30.0},
    "tiresias": {"limits": [3600.0 * 16], "promote": 0, "round_s": ROUND_S, "order": "entry"},
}
"""Policy -> its options: those of the authors' ``optimus.py`` and ``tiresias.py``."""


@dataclass(frozen=True, slots=True)
class Information:
    """What differs from the artifact's run.

    ``exact``: managers are told what is really left of a job, there in whole epochs. ``packed_speeds``: jobs are as
    fast as on the fewest servers, wherever they are.
    """

    exact: bool = False
    packed_speeds: bool = False


AS_THERE: Final = Information()


def play(
    workload: Path, policy: str, servers: int = SERVERS, start_s: float = 0.0, information: Information = AS_THERE
) -> tuple[JobOutcome, ...]:
    """Return the outcomes of a workload's jobs under one of :data:`POLICIES`; a first start costs ``start_s``."""
    read = list(jobs(workload))
    fabric = servers_of_4(servers)
    options = {**POLICIES[policy], **({"start_s": start_s} if start_s else {})}
    chosen = manager("most-free", policy=policy, options={"policy": options})
    told = None if information.exact else told_left(read)
    speed = measured_speed(read, fabric, information.packed_speeds)
    return Play(chosen, fabric, asked(read, len(fabric.gpus)), speed, told).run()


def servers_of_4(servers: int) -> Fabric:
    """Return ``servers`` servers under one ToR; the network itself plays no part."""
    rate = 100e9
    return clos(
        hosts=servers,
        gpus_per_host=SERVER_GPUS,
        nics_per_host=1,
        tors=1,
        aggregations=1,
        port_rate=rate,
        fabric_rate=rate,
    )


def asked(read: Iterable[PolluxJob], gpus: int) -> list[Waiting]:
    """Return the jobs as a manager sees them: elastic, with their measured speeds."""
    found = []
    for job in read:
        most = 1 if job.application.name in ON_ONE_GPU else min(gpus, job.application.most_gpus(job.batch))
        steps = tuple(job.application.packed_s(count, job.batch) for count in range(1, max(most, job.gpus) + 1))
        found.append(
            Waiting(
                job.name,
                job.gpus,
                job.submit_s,
                job.duration_s,
                remaining_s=job.duration_s,
                step_s=steps,
                model=job.application.name,
                min_gpus=1,
                max_gpus=most,
            )
        )
    return found


def measured_speed(read: Iterable[PolluxJob], fabric: Fabric, packed_speeds: bool = False) -> Speed:
    """Return the speed of a job on its GPUs, by how many of them each server has; 1 on those it asks for, packed."""
    by_name = {job.name: job for job in read}
    server_of = {gpu: host.name for host in fabric.hosts.values() for gpu in host.gpus}

    def speed(running: Running) -> float:
        job = by_name[running.name]
        counts = tuple(Counter(server_of[gpu] for gpu in running.gpus).values())
        placement = packed(len(running.gpus)) if packed_speeds else counts
        return job.duration_s / sum(job.application.epochs_s(placement, job.batch))

    return speed


def told_left(read: Iterable[PolluxJob]) -> Told:
    """Return what the authors' Optimus is told is left of a job: the iterations of the epochs after the current one."""
    by_name = {job.name: (job, _epoch_ends_s(job)) for job in read}

    def told(name: str, left_s: float) -> float:
        job, ends_s = by_name[name]
        epoch = bisect_right(ends_s, ends_s[-1] - left_s)
        return job.application.told_iterations(job.batch, epoch) * job.application.packed_s(job.gpus, job.batch)

    return told


def _epoch_ends_s(job: PolluxJob) -> list[float]:
    """Seconds of work until the end of each epoch, on the GPUs it asks for."""
    return list(accumulate(job.application.epochs_s(packed(job.gpus), job.batch)))
