"""The managers whose properties are checked: those of the catalogue, and options that change what they do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from types import MappingProxyType
from typing import Any, Final

from workloads.managers.catalogue import MANAGERS
from workloads.managers.manager import Manager
from workloads.managers.registry import Point, manager

CLUSTERS: Final = ("a", "b")
"""Virtual clusters of the random jobs."""
_QUEUES: Final = {"a": {"capacity": 25, "most": 100}, "b": {"capacity": 75}}


@dataclass(frozen=True)
class Case:
    """A manager by its parts. ``may_deadlock``: without gangs, jobs that each hold what others need wait forever."""

    placer: str = "consolidated"
    queue: str = "fifo-backfill"
    policy: str = "gang"
    options: Mapping[Point, Mapping[str, Any]] = field(default_factory=dict)
    may_deadlock: bool = False

    def manager(self, seed: int) -> Manager:
        """Return the manager."""
        return manager(self.placer, self.queue, self.policy, options=self.options, seed=seed)


_MORE: Final[Mapping[str, Case]] = {
    "fair, most": Case(queue="fair", options={"queue": {"shares": {"a": {"most": 8}, "b": {"weight": 3}}}}),
    "fair, backfill": Case(queue="fair", options={"queue": {"shares": {"a": {"most": 8}}, "backfill": True}}),
    "fair, preemption": Case(queue="fair", options={"queue": {"preemption": True}}),
    "fair, hierarchy": Case(
        queue="fair", options={"queue": {"shares": {"all": {"queues": {"a": {"least": 8}, "b": {"weight": 2}}}}}}
    ),
    "capacity-scheduler, two queues": Case(queue="capacity-scheduler", options={"queue": {"queues": _QUEUES}}),
    "kubernetes, release": Case("none", policy="kubernetes", options={"policy": {"release_s": 60.0}}),
    "philly, short waits": Case("locality", "fair", "philly", {"policy": {"wait_s": 20.0, "back_off_s": 10.0}}),
    "hived, quotas": Case(
        "hived", policy="guarantee", options={"placer": {"virtual_clusters": {"a": {"tor": 1}, "b": {"tor": 1}}}}
    ),
}

CASES: Final[Mapping[str, Case]] = MappingProxyType(
    {
        **{
            name: Case(parts.placer, parts.queue, parts.policy, parts.options, parts.policy == "kubernetes")
            for name, parts in MANAGERS.items()
        },
        **_MORE,
    }
)
"""Name -> manager."""

SIZES: Final = (1, 1, 2, 3, 4, 6, 8, 8, 12, 16, 20)
"""GPUs of the random jobs; the cluster has 16."""


@dataclass(frozen=True, slots=True)
class RandomJob:
    """A job of a random trace; ``elastic``: fewest and most GPUs, or None. All its ``attempts`` but the last fail."""

    name: str
    submit_s: float
    duration_s: float
    gpus: int
    virtual_cluster: str
    opportunistic: bool
    elastic: tuple[int, int] | None
    attempts: int = 1


def random_trace(seed: int, jobs: int = 12) -> tuple[RandomJob, ...]:
    """Return some jobs in order of submission; several may come at the same moment."""
    random, fates = Random(f"{seed}|manager properties"), Random(f"{seed}|attempts")
    at_s, found = 0.0, []
    for number in range(jobs):
        at_s += random.choice((0.0, 0.0, float(random.randint(1, 120))))
        gpus = random.choice(SIZES)
        elastic = (max(1, gpus // 2), 2 * gpus) if random.random() < 0.3 and 2 * gpus <= 16 else None
        found.append(
            RandomJob(
                f"job{number}",
                at_s,
                float(random.randint(20, 600)),
                gpus,
                random.choice(CLUSTERS),
                random.random() < 0.3,
                elastic,
                fates.choice((1, 1, 1, 2, 3)),
            )
        )
    return tuple(found)
