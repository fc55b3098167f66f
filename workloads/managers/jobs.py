"""Jobs as a cluster manager sees them: what they ask for, what they have had, and where they run.

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

    An ``opportunistic`` job has whatever is idle, and may have to leave for any other.

    ``apart_from`` are jobs with which it is not to share GPUs again.

    ``started_s`` is when it first started, ``waiting_since_s`` when it last joined those that wait (None for
    both: it has not run yet). ``ran_s`` counts the seconds of earlier stretches; like ``attained_service_s`` it
    begins anew when the job is promoted. ``number`` counts the jobs as they came, for ties.
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
        """Seconds that are left of it on the GPUs it asks for; None if nobody knows."""
        return self.duration_s if self.remaining_s is None else self.remaining_s


@dataclass(frozen=True, slots=True)
class Running:
    """A job on its ``gpus`` (node names) since ``since_s``; ``job`` is what it asked for.

    ``bound`` is what its placer wrote down (:class:`Placement`), ``share_gpus_with`` the jobs on the same GPUs since
    ``packed_s``. ``speed`` is how fast it has been there, as a share of its speed alone; None where nobody measures.
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
        """GPU-seconds since the job came, or was promoted."""
        return self.job.attained_service_s + len(self.gpus) * (now_s - self.since_s)

    def left_s(self, now_s: float) -> float | None:
        """Seconds that are left of it on the GPUs it asked for, had it run undisturbed; None if nobody knows."""
        if self.job.left_s is None:
            return None
        return max(0.0, self.job.left_s - (now_s - self.since_s) * len(self.gpus) / self.job.gpus)

    def until(self, now_s: float) -> Waiting:
        """The job as it asks again, or goes on, if it stops at ``now_s``."""
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

    ``bound`` is for the placer itself: what the placement takes beyond its GPUs, in words of its own. It
    comes back in :attr:`Running.bound`, so that a placer needs no memory.
    """

    gpus: tuple[str, ...]
    bound: tuple[str, ...] = ()
