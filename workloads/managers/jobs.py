"""Jobs as a cluster manager sees them: their demands, their history, and where they run.

Times are in seconds of the trace's clock, attained service in GPU-seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that asks for ``gpus`` GPUs, all at once or not at all.

    ``duration_s`` and ``remaining_s`` are estimates, None where there is none. ``attained_service_s``
    counts GPU-seconds of earlier stretches. ``compute_s`` and ``communication_s`` are those of one
    iteration of its ``model`` alone; 0 for both says that nothing is known. ``attempts`` counts how often
    it was sent back, ``min_gpus`` and ``max_gpus`` bound an elastic job.

    An ``opportunistic`` job uses idle GPUs, and may be preempted by any other.

    ``apart_from`` are jobs with which it must not share GPUs.

    ``started_s`` is when it first started, ``waiting_since_s`` when it last joined the waiting jobs (None for
    both: it has not run yet). ``ran_s`` counts the seconds of earlier stretches; like ``attained_service_s`` it
    restarts at 0 when the job is promoted. ``number`` is the order of submission, which breaks ties.
    """

    name: str
    gpus: int
    submit_s: float = 0.0
    duration_s: float | None = None
    attained_service_s: float = 0.0
    remaining_s: float | None = None
    compute_s: float = 0.0
    communication_s: float = 0.0
    virtual_cluster: str = ""
    user: str = ""
    model: str = ""
    preemptible: bool = True
    attempts: int = 0
    min_gpus: int | None = None
    max_gpus: int | None = None
    opportunistic: bool = False
    apart_from: tuple[str, ...] = ()
    started_s: float | None = None
    waiting_since_s: float | None = None
    ran_s: float = 0.0
    number: int = 0

    @property
    def left_s(self) -> float | None:
        """Seconds left on the GPUs it asks for; None if unknown."""
        return self.duration_s if self.remaining_s is None else self.remaining_s


@dataclass(frozen=True, slots=True)
class Running:
    """A job on its ``gpus`` (node names) since ``since_s``; ``job`` is what it asked for.

    ``bound`` is what its placer recorded (:class:`Placement`), ``share_gpus_with`` the jobs on the same GPUs since
    ``packed_s``. ``speed`` is how fast it has been there, as a share of its speed alone; None where it is not measured.
    """

    job: Waiting
    gpus: tuple[str, ...]
    since_s: float
    bound: tuple[str, ...] = ()
    share_gpus_with: tuple[str, ...] = ()
    packed_s: float | None = None
    speed: float | None = None

    @property
    def name(self) -> str:
        """The job's name."""
        return self.job.name

    def attained_service_s(self, now_s: float) -> float:
        """GPU-seconds since its submission, or its promotion."""
        return self.job.attained_service_s + len(self.gpus) * (now_s - self.since_s)

    def left_s(self, now_s: float) -> float | None:
        """Seconds left on the GPUs it asked for, had it run undisturbed; None if unknown."""
        if self.job.left_s is None:
            return None
        return max(0.0, self.job.left_s - (now_s - self.since_s) * len(self.gpus) / self.job.gpus)

    def until(self, now_s: float) -> Waiting:
        """The job as it waits, or continues elsewhere, if it stops at ``now_s``."""
        return replace(
            self.job,
            remaining_s=self.left_s(now_s),
            attained_service_s=self.attained_service_s(now_s),
            ran_s=self.job.ran_s + now_s - self.since_s,
            waiting_since_s=now_s,
        )


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a job goes: GPUs by node name, in ring order.

    ``bound`` is for the placer itself: what the placement takes beyond its GPUs, in a form of its own. It
    comes back in :attr:`Running.bound`, so that a placer needs no memory.
    """

    gpus: tuple[str, ...]
    bound: tuple[str, ...] = ()
