"""What a run can leave behind on the machine, as seen from outside: for the benchmarks of faults and of many runs."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from testbed.engines.emulation.namespaces.sandbox import LOCK
from testbed.machine.file_lock import is_held
from testbed.machine.ownership import mark_of

PATIENCE_S: Final = 5.0
"""The kernel takes namespaces down a moment after their last process."""
_PROC: Final = Path("/proc")
_NAMES: Final = {
    "the first process": "-m testbed.engines.emulation.namespaces.sandbox_main",
    "ovsdb-server": "ovsdb-server ",
    "ovs-vswitchd": "ovs-vswitchd ",
    "the controller": "-m controller ",
    "a worker": "-m workloads.worker ",
    "the opener": "-m workloads.opener ",
    "a host's shell": "mininet:h",
}


@dataclass(frozen=True)
class Traces:
    """Interfaces and mounts of this namespace, files under the temporary folder, whether the machine's lock is held."""

    interfaces: frozenset[str]
    mounts: frozenset[str]
    files: frozenset[str]
    locked: bool

    def beyond(self, before: Traces) -> list[str]:
        """What is here and was not ``before``, in words."""
        found = [f"interface {name}" for name in sorted(self.interfaces - before.interfaces)]
        found += [f"mount {place}" for place in sorted(self.mounts - before.mounts)]
        found += [f"file {name}" for name in sorted(self.files - before.files)]
        return found + (["the machine's lock"] if self.locked and not before.locked else [])


def traces() -> Traces:
    """What is here now that a run could have made."""
    return Traces(
        interfaces=frozenset(name for _, name in socket.if_nameindex()),
        mounts=frozenset(line.split()[1] for line in (_PROC / "self/mounts").read_text().splitlines()),
        files=frozenset(path.name for path in Path(tempfile.gettempdir()).glob("testbed-*")),
        locked=is_held(LOCK),
    )


def processes_of(run: int) -> Iterator[int]:
    """The processes that carry the mark of the run that is, or was, process ``run``."""
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (mark_of(int(entry.name)) or "").startswith(f"{run}-"):
            yield int(entry.name)


def named_processes(run: int) -> Mapping[str, tuple[int, ...]]:
    """What they are -> process ids, in order: ``unshare``, ``the first process``, ``a worker`` ..."""
    found: dict[str, list[int]] = {}
    for pid in sorted(processes_of(run)):
        if name := _role_of(pid):
            found.setdefault(name, []).append(pid)
    return {name: tuple(pids) for name, pids in found.items()}


def _role_of(pid: int) -> str:
    """What a process is by its command line; empty if it is nothing that a run starts, or has ended."""
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""
    if words.startswith("unshare "):
        return "unshare"
    return next((name for name, part in _NAMES.items() if part in words), "")


def left_by(run: int, before: Traces, out: Path | None = None) -> list[str]:
    """What the run that was process ``run`` has left, in words, once the kernel had time to clear up.

    ``out``: where its run directories are; drafts in them count.
    """
    deadline = time.monotonic() + PATIENCE_S
    while True:
        found = [f"process {pid} ({_name_of(pid)})" for pid in processes_of(run)] + traces().beyond(before)
        if out is not None and out.is_dir():
            found += [f"file {path.relative_to(out)}" for path in sorted(out.rglob(".*"))]
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


def _name_of(pid: int) -> str:
    try:
        return (_PROC / str(pid) / "comm").read_text().strip()
    except OSError:
        return "?"


def state_of_record(out: Path) -> str:
    """What the run directory under ``out`` says of itself: ``none``, ``UNFINISHED``, or verdict and reasons."""
    from testbed.errors import BadInputError
    from testbed.results.run_directory import RunDirectory

    found = [path for path in sorted(out.iterdir()) if path.is_dir()] if out.is_dir() else []
    if not found:
        return "none"
    if not RunDirectory(found[-1]).finished:
        return "UNFINISHED"
    try:
        fidelity = RunDirectory.open(found[-1]).read_summary()["runs"][0]["fidelity"]
    except (BadInputError, KeyError, IndexError) as error:
        return f"damaged: {error}"
    return "; ".join([str(fidelity["verdict"]), *fidelity["reasons"]])


def descriptors() -> int:
    """Open descriptors of this process."""
    return len(os.listdir("/proc/self/fd"))
