"""Progress of a command on standard error: the phase, the elapsed and the remaining time.

A bar on a terminal, plain lines elsewhere, nothing if quiet.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Final, Protocol, TextIO

from rich.console import Console, RenderableType
from rich.progress import BarColumn, ProgressColumn, Task, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.text import Text

LINE_EVERY_S: Final = 15.0
WATCHED_LINE_EVERY_S: Final = 3.0


class View(Protocol):
    """Something that changes while a command works, to be shown below its phases."""

    def screen(self) -> RenderableType | None:
        """As it is now, for a terminal; None for nothing."""
        ...

    def line(self) -> str:
        """As it is now, in one line; empty for nothing."""
        ...


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
    """``with Progress(quiet=False) as progress``: one phase at a time; a new phase ends the previous one.

    ``view`` is shown below: on a terminal once a second, elsewhere in the lines that tell how far a phase is.
    """

    def __init__(
        self,
        quiet: bool,
        *,
        stream: TextIO | None = None,
        now: Callable[[], float] = time.monotonic,
        view: View | None = None,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._now = now
        self._quiet = quiet
        self._view = view
        self._line_every_s = LINE_EVERY_S if view is None else WATCHED_LINE_EVERY_S
        self._bars = None if quiet or not self._stream.isatty() else _bars(self._stream, view)
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
        elif self._now() - self._spoke >= self._line_every_s:
            self._spoke = self._now()
            self._say(f"{self._name}: {self._state()}{f', {note}' if note else ''}{self._viewed()}")

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

    def _viewed(self) -> str:
        seen = "" if self._view is None else self._view.line()
        return f"; {seen}" if seen else ""

    def remark(self, text: str) -> None:
        """Say ``text``, a line of its own, if there is any."""
        if text and self._bars is not None:
            self._bars.console.print(text, markup=False, highlight=False, style="yellow")
        elif text:
            self._say(text)

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


class _BarsAboveView(Bars):
    """Bars with a view below them, drawn once a second: drawing a view costs as much as ten bars."""

    def __init__(self, *columns: ProgressColumn, console: Console, view: View) -> None:
        self._view = view
        super().__init__(*columns, console=console, transient=False, refresh_per_second=1)

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bars, then the view."""
        yield from super().get_renderables()
        if (screen := self._view.screen()) is not None:
            yield screen


def _bars(stream: TextIO, view: View | None) -> Bars:
    plain = partial(TextColumn, markup=False)  # names of schedulers and jobs are no markup
    columns = (plain("{task.description}"), BarColumn(bar_width=28), _Clock(), plain("{task.fields[note]}"))
    if view is not None:
        return _BarsAboveView(*columns, console=Console(file=stream), view=view)
    return Bars(*columns, console=Console(file=stream), transient=False)
