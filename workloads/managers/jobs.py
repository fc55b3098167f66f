"""Jobs as a cluster manager sees them: what they ask for, what they have had, and where they run.

Times are in seconds of the trace's clock, attained service in GPU-seconds.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that asks for ``gpus`` GPUs, all at once or not at all.

    ``duration_s`` and ``remaining_s`` are estimates, None where there is none. ``attained_service_s``
    counts GPU-seconds of earlier stretches. ``compute_s`` and ``communication_s`` are those of one
    iteration of its model alone; 0 for both says that nothing is known. ``attempts`` counts how often
    it was sent back, ``least_gpus`` and ``most_gpus`` bound an elastic job.
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
    preemptible: bool = True
    attempts: int = 0
    least_gpus: int | None = None
    most_gpus: int | None = None


@dataclass(frozen=True, slots=True)
class Running:
    """A job on its ``gpus`` (node names) since ``since_s``; ``job`` is what it asked for.

    ``bound`` is what its placer wrote down (:class:`Placement`), ``packed_with`` the jobs on the same GPUs.
    """

    job: Waiting
    gpus: tuple[str, ...]
    since_s: float
    bound: tuple[str, ...] = ()
    packed_with: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The job's name."""
        return self.job.name


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a job goes: GPUs by node name, in ring order.

    ``bound`` is for the placer itself: what the placement takes beyond its GPUs, in words of its own. It
    comes back in :attr:`Running.bound`, so that a placer needs no memory.
    """

    gpus: tuple[str, ...]
    bound: tuple[str, ...] = ()
