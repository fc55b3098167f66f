"""Cases in forked children: each with a limit on its time and its memory, none able to end the others."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import selectors
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Ending = Literal["accepted", "refused", "unclean", "hang", "memory"]
ENDINGS: Final[tuple[Ending, ...]] = ("accepted", "refused", "unclean", "hang", "memory")

LIMIT_S: Final = 20.0
"""A case that takes longer hangs."""
LIMIT_BYTES: Final = 2 * 2**30
"""Memory that a case may take beyond that of the program."""
CASES_PER_CHILD: Final = 250
"""Then a new child goes on, so that what one case leaves behind reaches few others."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """How case ``number`` ended, ``seconds`` it took, and one line of ``detail`` for what is not clean."""

    number: int
    ending: Ending
    seconds: float
    detail: str = ""


Case = Callable[[int, Path], tuple[Ending, str]]
"""(number, folder of its own) -> how it ended and why."""


def fight(case: Case, numbers: Sequence[int], folder: Path, processes: int = 2) -> Iterator[CaseResult]:
    """Yield a result for each of ``numbers``, in no order, from ``processes`` children at a time."""
    waiting = [list(numbers[at : at + CASES_PER_CHILD]) for at in range(0, len(numbers), CASES_PER_CHILD)][::-1]
    children: list[_Child] = []
    try:
        while waiting or children:
            while waiting and len(children) < processes:
                children.append(_Child(case, waiting.pop(), folder))
            yield from _news(children)
            for child in [each for each in children if each.over]:
                children.remove(child)
                yield from child.end()
                if child.left:
                    waiting.append(child.left)
    finally:
        for child in children:
            child.kill()


def _news(children: Sequence[_Child]) -> Iterator[CaseResult]:
    with selectors.DefaultSelector() as selector:
        for child in children:
            selector.register(child.reports, selectors.EVENT_READ, child)
        ready = selector.select(0.2)
    for key, _ in ready:
        yield from key.data.read()
    for child in children:
        child.watch()


class _Child:
    """A process that works off cases; what it reports is read from a pipe."""

    def __init__(self, case: Case, numbers: list[int], folder: Path) -> None:
        self.left = numbers
        self.over = False
        self._hung = False
        self._began: float | None = None
        self._text = b""
        self.reports, writes = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.reports)
            _work(case, numbers, folder, writes)
        os.close(writes)

    def read(self) -> Iterator[CaseResult]:
        """What it has reported since."""
        found = os.read(self.reports, 2**20)
        self.over = not found
        *lines, self._text = (self._text + found).split(b"\n")
        for line in lines:
            report = json.loads(line)
            if "ending" not in report:
                self._began = time.monotonic()
                continue
            self._began = None
            self.left = self.left[1:]
            yield CaseResult(**report)

    def watch(self) -> None:
        """End it if its case takes too long."""
        if self._began is not None and time.monotonic() - self._began > LIMIT_S and not self._hung:
            self._hung = True
            os.kill(self.pid, signal.SIGKILL)

    def end(self) -> Iterator[CaseResult]:
        """Wait for it; the case in which it died is one more result."""
        os.close(self.reports)
        _, status = os.waitpid(self.pid, 0)
        if self._began is not None:
            number, self.left = self.left[0], self.left[1:]
            code = os.waitstatus_to_exitcode(status)
            took = time.monotonic() - self._began
            yield CaseResult(number, "hang" if self._hung else "unclean", took, "" if self._hung else f"died: {code}")

    def kill(self) -> None:
        """End it at once."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.reports)
        os.waitpid(self.pid, 0)


def _work(case: Case, numbers: Sequence[int], folder: Path, writes: int) -> None:
    """The child: report each case and leave without any of the parent's exit handlers."""
    status = 1
    try:
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + LIMIT_BYTES, size + LIMIT_BYTES))
        own = Path(tempfile.mkdtemp(dir=folder))
        tempfile.tempdir = str(own)
        for number in numbers:
            _report(writes, {"number": number})
            began = time.monotonic()
            ending, detail = _guarded(case, number, own)
            took = time.monotonic() - began
            _report(writes, {"number": number, "ending": ending, "seconds": took, "detail": detail})
        status = 0
    finally:
        os._exit(status)


def _guarded(case: Case, number: int, folder: Path) -> tuple[Ending, str]:
    try:
        return case(number, folder)
    except MemoryError:
        return "memory", ""
    except BaseException as error:  # whatever gets out would be a traceback
        said = " ".join(str(error).split())[:300]
        frames = traceback.extract_tb(error.__traceback__)[-3:]
        places = ", ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames)
        return "unclean", f"{type(error).__name__}: {said} ({places})"


def _report(writes: int, document: Mapping[str, object]) -> None:
    os.write(writes, json.dumps(document).encode() + b"\n")
