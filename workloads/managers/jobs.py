"""Jobs as a cluster manager sees them: their demands, their history, and where they run.

Times are in seconds of the trace's clock, attained service in GPU-seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that asks for GPUs, all at once or not at all.

    Times are seconds of the run or trace, service is in GPU-seconds.
    """

    name: str
    """Its name."""
    gpus: int
    """How many GPUs it asks for."""
    submit_s: float = 0.0
    """When it was submitted."""
    duration_s: float | None = None
    """Estimate of the seconds that it runs on the GPUs it asks for; None if there is none."""
    attained_service_s: float = 0.0
    """GPU-seconds of earlier stretches."""
    remaining_s: float | None = None
    """Seconds left on the GPUs it asks for; None if unknown."""
    compute_s: float = 0.0
    """Seconds of compute in an iteration alone; 0 for both: nothing is known."""
    communication_s: float = 0.0
    """Seconds of communication in an iteration alone."""
    ring: tuple[int, float] | None = None
    """For a job that sends nothing: the first number of more GPUs on which it would, and the seconds of communication
    there; None: unknown, or there is none."""
    storage_s: float | None = None
    """Seconds in which an iteration reads its input from storage; None: not profiled."""
    preprocessing_s: float | None = None
    """Seconds in which CPUs prepare the input of an iteration; None: not profiled."""
    step_s: tuple[float, ...] = ()
    """Measured seconds of an iteration on 1, 2, .. GPUs that lie together, of the same batch; empty where unknown."""
    measured_s: tuple[tuple[int, float], ...] = ()
    """(GPUs, seconds that a second of its work took on so many), as measured while it ran."""
    loss_of: Callable[[float], float] | None = None
    """Seconds of work done -> its loss then, which only an engine may call; None: it has no losses."""
    losses: tuple[tuple[float, float], ...] = ()
    """(seconds of work done, loss), as measured while it ran."""
    epoch_s: float = 0.0
    """Seconds of its work in an epoch of training; 0: unknown."""
    virtual_cluster: str = ""
    """The virtual cluster it was submitted to."""
    user: str = ""
    """Who submitted it."""
    model: str = ""
    """Name of its model."""
    preemptible: bool = True
    """Whether it may be stopped."""
    attempts: int = 0
    """How many of its attempts have failed."""
    tries: int = 0
    """How often it was sent back (``Requeue``) since it was submitted, or since its last attempt failed."""
    min_gpus: int | None = None
    """Fewest GPUs of an elastic job; None if it is not elastic."""
    max_gpus: int | None = None
    """Most GPUs of an elastic job."""
    opportunistic: bool = False
    """Whether it uses idle GPUs only, and may be preempted by any other."""
    priority: int = 0
    """Of jobs of the same virtual cluster, those of higher priority go first."""
    gpu_type: str = ""
    """The type of GPUs that it asks for; empty if any will do."""
    demoted_s: tuple[float, ...] = ()
    """When it entered each lower queue since it was submitted or promoted, where its policy says so."""
    apart_from: tuple[str, ...] = ()
    """Jobs with which it must not share GPUs."""
    started_s: float | None = None
    """When it first started; None if it has not run yet."""
    asking_since_s: float | None = None
    """Since when its present attempt to get GPUs lasts; None if it has not asked yet."""
    waiting_since_s: float | None = None
    """When it last joined the waiting jobs; None if it has not run yet."""
    ran_s: float = 0.0
    """Seconds of earlier stretches since it was submitted or promoted."""
    waited_s: float = 0.0
    """Seconds of the waits between its stretches since it was submitted or promoted."""
    draws_by: str = ""
    """What fixes random draws for it beside the seed; empty: its name, which in a trace is its id."""
    number: int = 0
    """Order of submission, which breaks ties."""
    preemption: int = 0
    """Number of its last preemption among those of all jobs, which breaks ties; 0 if it has not been preempted."""
    last_gpus: tuple[str, ...] = ()
    """The GPUs that it had last, where no placer recorded anything for them; it may resume there."""
    last_speed: float | None = None
    """How fast it was there (``Running.speed``); None where that was not measured."""

    @property
    def draw_key(self) -> str:
        """What fixes random draws for the job beside the seed."""
        return self.draws_by or self.name

    @property
    def left_s(self) -> float | None:
        """Seconds left on the GPUs it asks for; None if unknown."""
        return self.duration_s if self.remaining_s is None else self.remaining_s

    def promoted(self, now_s: float) -> Waiting:
        """The job as it waits if it counts as new from ``now_s`` on; its progress stays."""
        return replace(self, attained_service_s=0.0, ran_s=0.0, waited_s=0.0, waiting_since_s=now_s, demoted_s=())


@dataclass(frozen=True, slots=True)
class Running:
    """A job on its GPUs."""

    job: Waiting
    """What it asked for."""
    gpus: tuple[str, ...]
    """Names of its GPUs, in ring order."""
    since_s: float
    """Since when it has had them; if it holds some of its GPUs, since it has held any."""
    bound: tuple[str, ...] = ()
    """What its placer recorded (``Placement.bound``)."""
    share_gpus_with: tuple[str, ...] = ()
    """Names of the jobs on the same GPUs."""
    packed_s: float | None = None
    """Since when it shares them; None if it does not."""
    speed: float | None = None
    """How fast it has been there, as a share of its speed alone on the GPUs it asked for; None: not measured."""
    holding: bool = False
    """Whether it holds some of its GPUs, waits for the rest and computes nothing."""
    known_left_s: float | None = None
    """Seconds that were left at ``known_at_s``, pauses, contention and shared GPUs included; None where unknown."""
    known_at_s: float = 0.0
    """When the engine last told how much of it was left."""

    @property
    def name(self) -> str:
        """The job's name."""
        return self.job.name

    @property
    def claimed_gpus(self) -> int:
        """GPUs that it has; one that waits for the rest of its GPUs counts with all of them."""
        return self.job.gpus if self.holding else len(self.gpus)

    def attained_service_s(self, now_s: float) -> float:
        """GPU-seconds since its submission, or its promotion."""
        if self.holding:
            return self.job.attained_service_s
        return self.job.attained_service_s + len(self.gpus) * (now_s - self.since_s)

    def left_s(self, now_s: float) -> float | None:
        """Seconds left on the GPUs it asked for, undisturbed from when that was last known; None if unknown."""
        if self.holding:
            return self.job.left_s
        if self.known_left_s is not None:
            left_s, then_s = self.known_left_s, self.known_at_s
        elif self.job.left_s is not None:
            left_s, then_s = self.job.left_s, self.since_s
        else:
            return None
        return max(0.0, left_s - (now_s - then_s) * len(self.gpus) / self.job.gpus)

    def until(self, now_s: float) -> Waiting:
        """The job as it waits, or continues elsewhere, if it stops at ``now_s``."""
        if self.holding:
            return self.job
        return replace(
            self.job,
            remaining_s=self.left_s(now_s),
            attained_service_s=self.attained_service_s(now_s),
            ran_s=self.job.ran_s + now_s - self.since_s,
            waiting_since_s=now_s,
            last_gpus=() if self.bound else self.gpus,
            last_speed=self.speed,
        )


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a job goes."""

    gpus: tuple[str, ...]
    """Names of as many different free GPUs as were asked for, in ring order."""
    bound: tuple[str, ...] = ()
    """For the placer itself: what the placement takes beyond its GPUs; it comes back in ``Running.bound``."""
