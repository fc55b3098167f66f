"""Progress of a command on standard error: the phase, the elapsed and the remaining time.

A bar on a terminal, plain lines elsewhere, nothing if quiet.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Final, TextIO

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

LINE_EVERY_S: Final = 15.0


def clock(seconds: float) -> str:
    """``75.2`` -> ``1:15``."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


def remaining(elapsed_s: float, value: float, total: float | None) -> float | None:
    """Seconds left at the present pace; None while it is unknown."""
    if total is None or value <= 0 or total <= 0:
        return None
    return max(0.0, elapsed_s * (total - value) / value)


class Progress:
    """``with Progress(quiet=False) as progress``: one phase at a time; a new phase ends the previous one."""

    def __init__(self, quiet: bool, *, stream: TextIO | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._now = now
        self._quiet = quiet
        self._bars = None if quiet or not self._stream.isatty() else _bars(self._stream)
        self._task: TaskID | None = None
        self._name = ""
        self._total: float | None = None
        self._value = 0.0
        self._started = self._spoke = 0.0

    def __enter__(self) -> Progress:
        if self._bars is not None:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.done()
        if self._bars is not None:
            self._bars.stop()

    def phase(self, name: str, total: float | None = None) -> None:
        """Begin phase ``name``; ``total`` is what :meth:`advance_to` counts up to, None if unknown."""
        self.done()
        self._name, self._total, self._value = name, total, 0.0
        self._started = self._spoke = self._now()
        if self._bars is not None:
            self._task = self._bars.add_task(name, total=total, note="")
        else:
            self._say(f"{name} ...")

    def advance_to(self, value: float, note: str = "") -> None:
        """Set the progress to ``value`` of the total; ``note`` describes the current activity."""
        if not self._name:
            return
        self._value = value
        if self._bars is not None and self._task is not None:
            self._bars.update(self._task, completed=value, note=note)
        elif self._now() - self._spoke >= LINE_EVERY_S:
            self._spoke = self._now()
            self._say(f"{self._name}: {self._state()}{f', {note}' if note else ''}")

    def done(self, note: str = "") -> None:
        """End the phase; ``note`` is a remark about it."""
        if not self._name:
            return
        elapsed = clock(self._now() - self._started)
        if self._bars is not None and self._task is not None:
            total = self._total if self._total is not None else 1.0
            self._bars.update(self._task, total=total, completed=total, note=note)
            self._bars.stop_task(self._task)
        else:
            self._say(f"{self._name}: done in {elapsed}{f', {note}' if note else ''}")
        self._name, self._task = "", None

    def _state(self) -> str:
        elapsed = self._now() - self._started
        left = remaining(elapsed, self._value, self._total)
        return f"{clock(elapsed)} elapsed" + (f", {clock(left)} left" if left is not None else "")

    def _say(self, text: str) -> None:
        if not self._quiet and self._bars is None:
            print(text, file=self._stream, flush=True)


class _Clock(ProgressColumn):
    def render(self, task: Task) -> Text:
        elapsed = task.finished_time if task.finished else task.elapsed
        left = None if task.finished else remaining(elapsed or 0.0, task.completed, task.total)
        return Text(clock(elapsed or 0.0) + (f", {clock(left)} left" if left is not None else ""), style="cyan")


def _bars(stream: TextIO) -> Bars:
    plain = partial(TextColumn, markup=False)  # names of schedulers and jobs are no markup
    columns = (plain("{task.description}"), BarColumn(bar_width=28), _Clock(), plain("{task.fields[note]}"))
    return Bars(*columns, console=Console(file=stream), transient=False)
