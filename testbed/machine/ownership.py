"""Whose process is it? Every process of a run carries the run's mark in its environment.

The mark is ``TESTBED_RUN=<pid>-<start>-<namespace>``: process id and start time (clock ticks since boot) of the
process that is the run, as seen where the run was started, and the PID namespace of that place. They name one
process for as long as the machine is up, even if its number is given out again. A run in a container is visible from
its host, where its numbers mean other processes: who is in another namespace cannot tell whether it goes on.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MARK: Final = "TESTBED_RUN"
_ID: Final = re.compile(r"([1-9][0-9]*)-([0-9]+)-([0-9]+)")
_PROC: Final = Path("/proc")


@dataclass(frozen=True, slots=True)
class Stray:
    """A process ``pid`` (``name``) that carries the mark of the run ``run``, which is no more."""

    pid: int
    name: str
    run: str


def own_mark() -> str:
    """Return the value of ``TESTBED_RUN`` for processes that this process starts as a run."""
    return f"{os.getpid()}-{_start_of(os.getpid())}-{_own_namespace()}"


def strays() -> Iterator[Stray]:
    """Find the processes that outlived their run; without root only those of the same user can be seen.

    This process and its ancestors are never among them.
    """
    family = set(_ancestors(os.getpid()))
    for entry in sorted(_PROC.iterdir(), key=lambda path: path.name):
        if not entry.name.isdigit() or int(entry.name) in family:
            continue
        run = mark_of(int(entry.name))
        if run is not None and run_is_gone(run):
            yield Stray(int(entry.name), _name_of(int(entry.name)), run)


def end(stray: Stray) -> bool:
    """Kill ``stray`` if it still is what it was found to be; say whether it was."""
    try:
        process = os.pidfd_open(stray.pid)
    except ProcessLookupError:
        return False
    try:
        # Looked at again through a handle, so that a number given out again is never hit.
        if mark_of(stray.pid) != stray.run:
            return False
        signal.pidfd_send_signal(process, signal.SIGKILL)
        return True
    except ProcessLookupError:
        return False
    finally:
        os.close(process)


def mark_of(pid: int) -> str | None:
    """Return the run that process ``pid`` belongs to, or None: no mark, gone, or not ours to look at."""
    try:
        variables = (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:
        return None
    for variable in variables:
        name, _, value = variable.partition(b"=")
        if name.decode("ascii", "replace") == MARK:
            return value.decode("ascii", "replace")
    return None


def run_is_gone(run: str) -> bool:
    """Say whether the process that is the run ``run`` has ended.

    One with an unreadable mark, or started in another PID namespace than this process's, counts as still there.
    """
    match = _ID.fullmatch(run)
    if match is None:
        return False
    pid, start, namespace = map(int, match.groups())
    return namespace == _own_namespace() and _start_of(pid) != start


def _own_namespace() -> int:
    """The number of this process's PID namespace; 0 where there is no telling."""
    try:
        return (_PROC / "self" / "ns" / "pid").stat().st_ino
    except OSError:
        return 0


def _stat(pid: int) -> list[str]:
    """Fields of ``/proc/PID/stat`` after the name, state first; empty if there is no such process."""
    try:
        return (_PROC / str(pid) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return []


def _start_of(pid: int) -> int | None:
    """Start time in ticks since boot; a zombie has ended."""
    fields = _stat(pid)
    return int(fields[19]) if fields and fields[0] not in "ZX" else None


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 0:
        yield pid
        fields = _stat(pid)
        pid = int(fields[1]) if fields else 0


def _name_of(pid: int) -> str:
    try:
        return (_PROC / str(pid) / "comm").read_text("utf-8", "replace").strip()
    except OSError:
        return "?"
