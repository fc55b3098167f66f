"""What a scheduler sees and what it says: :class:`ClusterView` in, :class:`Decision` out.

Both are immutable. A scheduler is pure and deterministic for a given seed; adapters carry its
decisions out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, runtime_checkable

from topologies.fabric import Fabric, Path
from workloads.job import Flow, Job


@dataclass(frozen=True, slots=True)
class JobArrived:
    """A job is about to start."""

    job: str


@dataclass(frozen=True, slots=True)
class JobDeparted:
    """A job has left; it is no longer in the view."""

    job: str


Event = JobArrived | JobDeparted


@dataclass(frozen=True)
class Decision:
    """Paths, levels, rates and shifts in force.

    ``paths``: flow id -> links. ``levels``: flow id or job name -> level, 0 highest.
    ``rates``: flow id -> bit/s. ``shifts``: job name -> seconds. A flow that is missing from a
    column has that column's default: ECMP path (:func:`controller.ecmp.with_default_paths`), lowest
    level, no rate limit, no shift. ``hashed`` names the flows whose path is left to the select
    groups of the switches. ``notes`` holds what the scheduler wants on record (intensities, k_j),
    JSON-ready; it changes nothing.
    """

    paths: Mapping[str, Path] = field(default_factory=dict)
    levels: Mapping[str, int] = field(default_factory=dict)
    rates: Mapping[str, float] = field(default_factory=dict)
    shifts: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[str, object] = field(default_factory=dict)
    hashed: tuple[str, ...] = ()

    def level_of(self, flow: Flow, lowest: int) -> int:
        """The level of ``flow``: its own, else its job's, else ``lowest``."""
        return self.levels.get(flow.id, self.levels.get(flow.job, lowest))


@dataclass(frozen=True)
class ClusterView:
    """Read-only state of the cluster at an event.

    ``jobs`` are the running jobs (an arriving one included) in order of arrival. ``levels`` is K,
    the number of strict priority levels; ``seed`` fixes every hash and every random draw.
    """

    fabric: Fabric
    jobs: Mapping[str, Job]
    levels: int = 8
    seed: int = 1
    decision: Decision = field(default_factory=Decision)

    @property
    def flows(self) -> tuple[Flow, ...]:
        """The flows of all running jobs, job by job."""
        return tuple(flow for job in self.jobs.values() for flow in job.flows)


@runtime_checkable
class Scheduler(Protocol):
    """One method, called at each event. ``name`` is what scenario files and reports call it."""

    name: ClassVar[str]
    summary: ClassVar[str]

    def decide(self, view: ClusterView, event: Event) -> Decision:
        """Return the decision for all running jobs."""
        ...
