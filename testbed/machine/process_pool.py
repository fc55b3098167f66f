"""Process pools that Ctrl-C ends at once: only the parent receives the signal, and kills its workers."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import InvalidStateError, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import Final, TypeVar

_PR_SET_PDEATHSIG: Final = 1

Started = TypeVar("Started")


@contextmanager
def started(
    processes: int,
    start: Callable[[ProcessPoolExecutor], Started],
    *,
    fresh: bool = False,
    prepare: Callable[[], None] | None = None,
) -> Iterator[Started]:
    """Yield what ``start`` returns, which submits all work to a pool of ``processes``; a ``fresh`` process per task.

    Each process calls ``prepare`` before its first task, and ends with this one.

    If the block ends early, the processes are killed in the middle of their work.
    """
    others = set(active_children())
    context, tasks = (get_context("spawn"), 1) if fresh else (None, None)
    with (
        _cancelled_in_silence(),
        ProcessPoolExecutor(processes, context, _begin, (prepare,), max_tasks_per_child=tasks) as executor,
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


def _begin(prepare: Callable[[], None] | None) -> None:
    """What each process does first."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if prepare is not None:
        prepare()


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
