"""What the processes of a real program report of their iterations, host by host."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from workloads.iteration.protocol import IterationEnded, PhaseTimes

GO: Final = b"g"
_LINE: Final = 1 << 16
_MOST_SPANS: Final = 10_000

Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Reported:
    """An iteration of one process on the monotonic clock: when it began and ended, and its spans of communication."""

    start: float
    end: float
    communication: tuple[Span, ...]


def reported(line: bytes) -> Reported | None:
    """Return the iteration in ``line``, None for a process that is ready; ``ValueError`` for anything else."""
    message = json.loads(line)
    if not isinstance(message, dict):
        raise ValueError("no mapping of keys to values")
    if "ready" in message:
        return None
    try:
        spans = tuple((float(begin), float(end)) for begin, end in message["communication"][:_MOST_SPANS])
        found = Reported(float(message["start"]), float(message["end"]), spans)
    except (KeyError, TypeError) as error:
        raise ValueError(f"an iteration without {error}") from error
    edges = [found.start, *(moment for span in spans for moment in span), found.end]
    if edges != sorted(edges):
        raise ValueError("an iteration whose times do not follow each other")
    return found


def iteration_of(job: str, number: int, parts: list[Reported], gpus: int, compute_s: float | None) -> IterationEnded:
    """Return iteration ``number`` of a host from what its processes report.

    It begins with the first process and ends with the last. A GPU computes outside of its process's communication, or
    for ``compute_s`` where the job says so and no process says more.
    """
    start, end = min(part.start for part in parts), max(part.end for part in parts)
    spans = [span for part in parts for span in part.communication]
    if spans:
        quiet = [part.end - part.start - sum(stop - begin for begin, stop in part.communication) for part in parts]
        busy = max(quiet)
        ready, done = min(begin for begin, _ in spans), max(stop for _, stop in spans)
    else:
        busy = end - start if compute_s is None else min(compute_s, end - start)
        ready, done = start + busy, end
    return IterationEnded(job, number, (PhaseTimes(start, ready, done, end, (busy,) * gpus),), 0.0, 0.0)


class HostReports:
    """Listens on a socket of its own for the processes of one host of a job.

    ``tell`` gets every iteration that all ``processes`` have ended; ``failed`` one line for what is not understood.
    """

    def __init__(
        self,
        job: str,
        processes: int,
        gpus: int,
        compute_s: float | None,
        tell: Callable[[IterationEnded], None],
        failed: Callable[[str], None],
    ) -> None:
        self._job, self._processes, self._gpus, self._compute_s = job, processes, gpus, compute_s
        self._tell, self._failed = tell, failed
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []
        self._parts: dict[int, list[Reported]] = defaultdict(list)
        self._ready = 0
        self.all_ready = asyncio.Event()

    async def listen(self, path: Path) -> None:
        """Accept processes at ``path``."""
        self._server = await asyncio.start_unix_server(self._serve, str(path), limit=_LINE)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        number = 0
        try:
            while line := await reader.readline():
                found = reported(line)
                if found is None:
                    self._ready += 1
                    if self._ready >= self._processes:
                        self.all_ready.set()
                    continue
                self._take(number, found)
                number += 1
        except (ValueError, ConnectionError) as error:
            self._failed(f"what a process of job {self._job} reports is not understood: {error}")

    def _take(self, number: int, part: Reported) -> None:
        parts = self._parts[number]
        parts.append(part)
        if len(parts) == self._processes:
            self._tell(iteration_of(self._job, number, self._parts.pop(number), self._gpus, self._compute_s))

    def go(self) -> None:
        """Let the processes begin their first iteration."""
        for writer in self._writers:
            writer.write(GO)

    async def close(self) -> None:
        """Listen no more."""
        for writer in self._writers:
            with contextlib.suppress(OSError):
                writer.close()
        if self._server is not None:
            self._server.close()
