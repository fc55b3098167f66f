"""Signals that end a command: it ends as by Ctrl-C, with one line, and takes down what it has begun."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final, NoReturn

_OTHERWISE: Final = (
    # Not to be caught, or not the end of a process.
    *("SIGKILL", "SIGSTOP", "SIGCONT", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGCHLD", "SIGURG", "SIGWINCH"),
    # Python's own.
    *("SIGINT", "SIGPIPE", "SIGXFSZ"),
    # Faults of the process itself.
    *("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT", "SIGSYS"),
)


class EndedBySignalError(KeyboardInterrupt):
    """The command was sent a signal that ends it; the text is its name."""


@contextmanager
def caught() -> Iterator[None]:
    """Raise :class:`EndedBySignalError` at the first signal that would end this process without a word.

    Signals that are ignored, as under ``nohup``, stay ignored. Only the main thread can do this; others leave it.
    """
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in _ending():
            if signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, _raise)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_to_the_system() -> None:
    """Undo :func:`caught` in a process that was forked meanwhile."""
    for number in _ending():
        if signal.getsignal(number) is _raise:
            signal.signal(number, signal.SIG_DFL)


def _ending() -> list[int]:
    others = {getattr(signal, name) for name in _OTHERWISE if hasattr(signal, name)}
    return sorted(number for number in signal.valid_signals() if number not in others)


def _raise(number: int, _frame: FrameType | None) -> NoReturn:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    raise EndedBySignalError(name)
