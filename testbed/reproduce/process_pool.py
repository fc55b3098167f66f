"""Process pools that Ctrl-C ends at once: only the parent receives the signal, and kills its workers."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import InvalidStateError, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import Final, TypeVar

from testbed.progress import Progress
from testbed.reproduce.paper_experiment import Settings

_CHUNK: Final = 5

Started = TypeVar("Started")
Result = TypeVar("Result")


@contextmanager
def started(
    processes: int,
    start: Callable[[ProcessPoolExecutor], Started],
    *,
    fresh: bool = False,
    prepare: Callable[[], None] | None = None,
) -> Iterator[Started]:
    """Yield what ``start`` returns, which submits all work to a pool of ``processes``; a ``fresh`` process per task.

    Each process calls ``prepare`` before its first task.

    If the block ends early, the processes are killed in the middle of their work.
    """
    others = set(active_children())
    context, tasks = (get_context("spawn"), 1) if fresh else (None, None)
    with (
        _cancelled_in_silence(),
        ProcessPoolExecutor(processes, context, prepare, max_tasks_per_child=tasks) as executor,
    ):
        try:
            with _interrupt_later():
                work = start(executor)
            yield work
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not interrupt this cleanup
            for child in set(active_children()) - others:
                child.kill()
            raise


@contextmanager
def _interrupt_later() -> Iterator[None]:
    """Let an interrupt of the block take effect after it: a process that is half started would end with a traceback.

    Threads and processes that the block starts never receive one: they inherit the mask. The mask alone does not keep
    Python from interrupting the main thread: another thread, which has none, may receive the signal for it.
    """
    interrupts: list[int] = []
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    handler = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if interrupts:
        signal.raise_signal(signal.SIGINT)


@contextmanager
def _cancelled_in_silence() -> Iterator[None]:
    """The pool's own thread fails when it tells cancelled work that its process is gone: nobody waits for that."""
    before = threading.excepthook

    def say(raised: threading.ExceptHookArgs) -> None:
        if not issubclass(raised.exc_type, InvalidStateError):
            before(raised)

    threading.excepthook = say
    try:
        yield
    finally:
        threading.excepthook = before


def each_case(make: Callable[[int, int], Result], settings: Settings, progress: Progress) -> list[Result]:
    """Return ``make(seed, index)`` for every case, in order, computed by ``settings.processes`` processes."""
    count, seeds = settings.cases, [settings.seed] * settings.cases
    progress.phase(f"{count} cases", count)
    if settings.processes == 1:
        return _counted(map(make, seeds, range(count)), progress)
    with started(settings.processes, lambda pool: pool.map(make, seeds, range(count), chunksize=_CHUNK)) as results:
        return _counted(results, progress)


def _counted(results: Iterable[Result], progress: Progress) -> list[Result]:
    done: list[Result] = []
    for result in results:
        done.append(result)
        progress.advance_to(len(done))
    return done
