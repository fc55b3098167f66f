"""Work spread over processes that Ctrl-C ends at once: only the parent hears it, and takes them with it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import TypeVar

Started = TypeVar("Started")


@contextmanager
def started(
    processes: int,
    start: Callable[[ProcessPoolExecutor], Started],
    *,
    fresh: bool = False,
    prepare: Callable[[], None] | None = None,
) -> Iterator[Started]:
    """Yield what ``start`` returns, which hands all work to a pool of ``processes``; ``fresh`` ones for each task.

    Each process calls ``prepare`` before its first task.

    Whatever ends the block early ends the processes, in the middle of their work.
    """
    others = set(active_children())
    context, tasks = (get_context("spawn"), 1) if fresh else (None, None)
    with ProcessPoolExecutor(processes, context, prepare, max_tasks_per_child=tasks) as executor:
        try:
            # Threads and processes inherit the mask, so that the pool's never hear of an interrupt.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                work = start(executor)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
            yield work
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends now: pressed again, nothing is cut short
            executor.shutdown(wait=False, cancel_futures=True)
            for child in set(active_children()) - others:
                child.kill()
            raise
