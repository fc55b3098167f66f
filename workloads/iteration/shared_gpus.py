"""Jobs that share GPUs: a GPU computes for one of them at a time, while the others send and receive.

A job asks for all its GPUs of this host before each phase and gives them back when it has computed: the interleaving of
compute and network of Muri (Zhao et al., SIGCOMM 2022), first come, first served in place of fixed offsets. One worker
drives all jobs of a host, so this table is enough; a job never waits for a GPU that only it uses.

No job waits for ever: a job that has GPUs gives them back after its compute time, and waits for nothing until
then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _Request:
    job: str
    gpus: tuple[str, ...]
    go: Callable[[], None]


class SharedGpus:
    """Which job the GPUs of this host compute for, and which jobs wait for them."""

    def __init__(self) -> None:
        self._taken: dict[str, str] = {}
        self._line: list[_Request] = []

    def share_of(self, job: str, gpus: Sequence[str]) -> GpuShare:
        """How ``job`` requests ``gpus``."""
        return GpuShare(self, job, tuple(gpus))

    def ask(self, request: _Request) -> None:
        """Let it go on as soon as no other job computes on its GPUs, or requested one of them earlier."""
        self._line.append(request)
        self._serve()

    def give_back(self, job: str) -> None:
        """``job`` has computed."""
        self._taken = {gpu: owner for gpu, owner in self._taken.items() if owner != job}
        self._serve()

    def leave(self, job: str) -> None:
        """``job`` computes no more, and asks for nothing."""
        self._line = [request for request in self._line if request.job != job]
        self.give_back(job)

    def _serve(self) -> None:
        spoken_for, served = set(self._taken), []
        for request in self._line:
            if spoken_for.isdisjoint(request.gpus):
                served.append(request)
            spoken_for.update(request.gpus)
        self._line = [request for request in self._line if request not in served]
        for request in served:
            self._taken.update(dict.fromkeys(request.gpus, request.job))
        for request in served:
            request.go()


@dataclass(frozen=True, slots=True)
class GpuShare:
    """A job's GPUs on this host."""

    table: SharedGpus
    job: str
    gpus: tuple[str, ...]

    def ask(self, go: Callable[[], None]) -> None:
        """Call ``go`` when they compute for this job: at once, unless they are shared."""
        self.table.ask(_Request(self.job, self.gpus, go))

    def give_back(self) -> None:
        """They have computed."""
        self.table.give_back(self.job)

    def leave(self) -> None:
        """The job is over."""
        self.table.leave(self.job)
