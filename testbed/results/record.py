"""What an engine hands back: raw rows in the scenario's own units (undilated seconds, unscaled bytes).

Rows are raw enough to recompute every summary from them. Times count from the start of the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from controller.decision import Decision
from testbed.experiment.scheduler_choice import SchedulerChoice
from workloads.job import Job
from workloads.managers.account import JobOutcome

Verdict = Literal["ok", "degraded", "invalid"]


@dataclass(frozen=True, slots=True)
class IterationRow:
    """One iteration of one GPU.

    ``compute_s`` busy time; ``communication_s`` from the first message allowed to the last received
    (overlapped or not); ``exposed_s`` idle while communicating, all peers ready; ``straggler_s``
    idle while a peer was not ready; what is left of ``end_s - start_s`` is waiting for the job's time
    shift, at the beginning, or for GPUs that compute for another job.
    """

    job: str
    gpu: str
    iteration: int
    start_s: float
    compute_s: float
    communication_s: float
    exposed_s: float
    straggler_s: float
    end_s: float
    disturbed: bool = False


@dataclass(frozen=True, slots=True)
class LinkRow:
    """Bytes one directed link sent at one level since the previous sample, and what waited at ``time_s``.

    ``longest_queue_bytes``: the most that waited since then; ``paused_s``: how long the level was paused. Both are 0
    but in a simulation at line rate.
    """

    time_s: float
    link: str
    level: int
    bytes: float
    queued_bytes: float
    drops: int
    longest_queue_bytes: float = 0.0
    paused_s: float = 0.0


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A message: what one flow carries in one phase of one iteration.

    ``start_s``: when its sender was allowed to begin; ``end_s``: when all of it had arrived; the difference is its flow
    completion time. ``empty_network_s``: what it takes with nothing else on the links of its path.
    """

    job: str
    iteration: int
    phase: int
    flow: str
    bytes: float
    start_s: float
    end_s: float
    empty_network_s: float

    @property
    def completion_s(self) -> float:
        """Its flow completion time."""
        return self.end_s - self.start_s

    @property
    def slowdown(self) -> float:
        """How many times as long it took as in an empty network."""
        return self.completion_s / self.empty_network_s


@dataclass(frozen=True, slots=True)
class RequestRow:
    """A request to a serving job, of ``prompt`` tokens, which gets ``output`` tokens.

    It arrived at ``arrival_s``; its prefill, which takes ``prefill_s`` alone, made its first token at
    ``first_token_s``; its cache was at its decode instance at ``cache_s``; its last token came at ``last_token_s``.
    """

    job: str
    request: int
    iteration: int
    prompt: int
    output: int
    arrival_s: float
    prefill_s: float
    first_token_s: float
    cache_s: float
    last_token_s: float

    @property
    def time_to_first_token_s(self) -> float:
        """From its arrival on: waiting and prefill."""
        return self.first_token_s - self.arrival_s

    def later(self, seconds: float) -> RequestRow:
        """The same request so many ``seconds`` later."""
        times = ("arrival_s", "first_token_s", "cache_s", "last_token_s")
        return replace(self, **{name: getattr(self, name) + seconds for name in times})


@dataclass(frozen=True, slots=True)
class AloneRow:
    """GPU-seconds that the GPUs of a job are idle in one of its iterations when nothing else runs on the fabric.

    ``idle_gpu_s``: on the paths that it had in the run. ``without_collisions_gpu_s``: on the same paths, if each of its
    connections had the links between switches to itself. Same draws, stragglers and experts as in the run.
    """

    job: str
    iteration: int
    idle_gpu_s: float
    without_collisions_gpu_s: float


@dataclass(frozen=True)
class DecisionRow:
    """A decision, when it came into force and why (``arrival of gpt``).

    ``levels_changed``, ``paths_changed``: how many levels (of jobs or flows) and paths (of flows) differ from those of
    the decision before, of those that run under both. A job that gets its level or loses it has the lowest without.
    """

    time_s: float
    cause: str
    decision: Decision
    confirmed_s: float = 0.0
    levels_changed: int = 0
    paths_changed: int = 0

    def after(self, rows: Sequence[DecisionRow], jobs: Iterable[Job] = (), lowest: int = 0) -> DecisionRow:
        """This row after ``rows``: with what it changes. ``jobs`` run; ``lowest``: the level of those without one."""
        if not rows:
            return self
        before, now = rows[-1].decision, self.decision
        return replace(
            self,
            levels_changed=_changed(before.levels, now.levels) + _gained_or_lost(before, now, jobs, lowest),
            paths_changed=0 if before.paths is now.paths else _changed(before.paths, now.paths),
        )


def _gained_or_lost(before: Decision, now: Decision, jobs: Iterable[Job], lowest: int) -> int:
    """How many of ``jobs`` that send under both decisions have a level in one of them only, and not the ``lowest``."""
    found = 0
    for job in jobs:
        one, other = before.levels.get(job.name), now.levels.get(job.name)
        if (one is None) != (other is None) and lowest not in (one, other):
            found += any(flow.id in before.paths and flow.id in now.paths for flow in job.flows)
    return found


def _changed(before: Mapping[str, object], after: Mapping[str, object]) -> int:
    return sum(key in before and before[key] != value for key, value in after.items())


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that was not as it should be: what, on which ``links`` (where it is about links), and when.

    ``kind``: ``cpu`` (the run's own load), ``neighbours`` (other processes, other guests), ``timer``,
    ``standstill``, ``wait`` (for a CPU), ``quota`` (of a control group), ``rate``, ``order`` (of levels),
    ``setting``, ``link`` (one that did not carry), ``path``, ``mark``, ``loss`` or ``short`` (too few iterations).
    Undilated seconds of the run.
    ``discarded``: the iterations that it touched are left out as disturbed, it does not count in the verdict.
    """

    kind: str
    from_s: float
    to_s: float
    what: str
    links: tuple[str, ...] = ()
    discarded: bool = False


@dataclass(frozen=True, slots=True)
class Fidelity:
    """The verdict on a run and the evidence it rests on. The flow engine is always ``ok``."""

    verdict: Verdict = "ok"
    reasons: tuple[str, ...] = ()
    min_idle_cpu: float = 1.0
    max_timer_lateness_s: float = 0.0
    link_rate_error: float = 0.0
    unintended_drops: int = 0
    retransmits: int = 0
    stolen_cpu: float = 0.0
    machine_caused: bool = False
    findings: tuple[Finding, ...] = ()
    max_run_delay: float = 0.0
    lower_level_share: float = 0.0


@dataclass(frozen=True, slots=True)
class Window:
    """The measured part of a run of one job, warm-up excluded."""

    start_s: float
    end_s: float


@dataclass(frozen=True)
class ManagedRecord:
    """What a cluster manager made of its jobs: every stint (a job of its own), and what became of each job.

    ``stints_of``: job -> names of its stints, in order. ``refused``: job -> why it could never start.
    """

    stints: tuple[Job, ...]
    stints_of: Mapping[str, tuple[str, ...]]
    outcomes: tuple[JobOutcome, ...]
    refused: Mapping[str, str]


@dataclass(frozen=True)
class RunRecord:
    """One scheduler's run; ``managed`` where a cluster manager placed its jobs.

    ``programs``: its jobs of kind ``external``, with the connections that were found. ``alone``: its other jobs by
    themselves; a job is missing there if it could not be simulated. ``messages``: those of jobs that are not external.
    ``requests``: those of serving jobs.
    """

    choice: SchedulerChoice
    engine: str
    duration_s: float
    windows: dict[str, Window]
    iterations: tuple[IterationRow, ...]
    links: tuple[LinkRow, ...]
    decisions: tuple[DecisionRow, ...]
    fidelity: Fidelity = field(default_factory=Fidelity)
    environment: dict[str, object] = field(default_factory=dict)
    managed: ManagedRecord | None = None
    programs: tuple[Job, ...] = ()
    alone: tuple[AloneRow, ...] = ()
    messages: tuple[MessageRow, ...] = ()
    requests: tuple[RequestRow, ...] = ()

    def jobs_of(self, planned: Sequence[Job]) -> tuple[Job, ...]:
        """Return the ``planned`` jobs, real programs with the connections that they had in this run."""
        found = {job.name: job for job in self.programs}
        return tuple(found.get(job.name, job) for job in planned)

    @property
    def scheduler(self) -> str:
        """The label of its scheduler."""
        return self.choice.label
