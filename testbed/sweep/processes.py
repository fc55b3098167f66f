"""Points on this machine, each worker a process that takes one point after the other.

Processes, not threads: the engines compute in Python, and a run that is killed, or that kills its process, takes one
point with it and not the sweep. A worker goes on to the next point, so that what a run must load and compile is loaded
and compiled once per worker. The parent keeps time and shows progress; it alone writes down what is complete.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from types import TracebackType
from typing import Final

from testbed.ending_signals import leave_to_the_system
from testbed.errors import EXIT_FAILED
from testbed.sweep.running import Work, attempt
from testbed.sweep.values import PointOutcome, Runner, SweepPoint

TICK_S: Final = 1.0
_ORPHAN_S: Final = 0.5
_CONTEXT: Final = get_context("fork")  # the modules are loaded already, and the runner need not be found by a name


class Processes:
    """``with Processes(runner, 4) as execute``: workers start here, before a progress display has threads to copy."""

    def __init__(self, runner: Runner, count: int) -> None:
        self._runner = runner
        self._count = count
        self._workers: list[_Worker] = []

    def __enter__(self) -> Processes:
        for _ in range(self._count):
            self._add()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.end()

    def __call__(self, work: Work) -> Iterator[tuple[SweepPoint, PointOutcome] | None]:
        """Each point with its outcome as it ends; None once a second in between."""
        waiting = iter(work)
        busy: dict[Connection, tuple[_Worker, SweepPoint]] = {}
        idle = deque(self._workers)
        while True:
            while idle and (then := next(waiting, None)) is not None:
                worker = self._alive(idle.popleft())
                worker.pipe.send(then)
                busy[worker.pipe] = worker, then[0]
            if not busy:
                return
            ready = wait(list(busy), TICK_S)
            for pipe in ready:
                assert isinstance(pipe, Connection)
                worker, point = busy.pop(pipe)
                idle.append(worker)
                yield point, worker.answer()
            if not ready:
                yield None

    def _add(self) -> _Worker:
        worker = _Worker(self._runner, [other.pipe for other in self._workers])
        self._workers.append(worker)
        return worker

    def _alive(self, worker: _Worker) -> _Worker:
        """The worker, or one in its place if its last point was its end."""
        if worker.process.is_alive():
            return worker
        self._workers.remove(worker)
        worker.end()
        return self._add()


class _Worker:
    """One process and the pipe to it."""

    def __init__(self, runner: Runner, others: Sequence[Connection]) -> None:
        self.pipe, there = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=_serve, args=(runner, there, [self.pipe, *others], os.getpid()))
        self.process.start()
        there.close()

    def answer(self) -> PointOutcome:
        """What came of the point; a worker that died has the point's failure to tell."""
        try:
            outcome = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode or 0
            how = f"by a signal ({signal.strsignal(-code)})" if code < 0 else f"with status {code}"
            return PointOutcome(problem=f"its process ended {how}", status=EXIT_FAILED)
        assert isinstance(outcome, PointOutcome)
        return outcome

    def end(self) -> None:
        """End the process, whatever it is at; an emulation of its own ends with it."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(runner: Runner, pipe: Connection, inherited: Sequence[Connection], parent: int) -> None:
    """Take points until there is nobody to give any."""
    for other in inherited:
        other.close()
    # A handler, for what is ignored would be ignored by every process that a run starts, too.
    signal.signal(signal.SIGINT, lambda number, frame: None)
    leave_to_the_system()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    try:
        while True:
            point, folder = pipe.recv()
            pipe.send(attempt(runner, point, folder))
    except (EOFError, OSError):
        return


def _end_with(parent: int) -> None:
    """A killed sweep leaves no run behind that would write beside the next sweep."""
    while os.getppid() == parent:
        time.sleep(_ORPHAN_S)
    os._exit(EXIT_FAILED)
