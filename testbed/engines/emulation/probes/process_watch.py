"""What kept the processes of a run from running: waiting for a CPU, a quota, being stopped.

``/proc/PID/task/*/schedstat`` counts the nanoseconds that a thread was ready and waited; ``cpu.stat`` of a
control group, and of those around it, the time that a quota held its processes back. Linux since 6.12 can count a
whole sleep as waiting (a thread that another CPU takes over while it is about to sleep), so what is counted is held
against the states in which the thread was seen.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

from testbed.engines.emulation.probes.proc_files import ProcFiles
from testbed.fidelity.observations import Standstill, Wait

_PROC: Final = Path("/proc")
_GROUPS: Final = Path("/sys/fs/cgroup")
STOPPED: Final = "tT"
"""States of a process that is stopped."""


class ProcessWatch:
    """Watches processes (name -> process id in this namespace).

    Call :meth:`sample` about once a second and :meth:`look` ten times as often: a process that is stopped
    (``SIGSTOP``, a debugger, a frozen control group) for longer than between two looks is in ``standstills``.
    """

    def __init__(self, processes: Mapping[str, int], now: float) -> None:
        self._processes = dict(processes)
        self._time = now
        self._files = ProcFiles()
        self._threads: dict[str, list[int]] = {}
        self._groups: dict[str, list[Path]] = {}
        self._delays: dict[tuple[int, int], int] = {}
        self._held: dict[Path, float] = {}
        self._stopped: dict[str, float] = {}
        self._looks = 0
        self._ready: set[tuple[int, int]] = set()
        self.waits: list[Wait] = []
        self.standstills: list[Standstill] = []
        self.sample(now)
        self.waits.clear()

    def sample(self, now: float) -> None:
        """Add to ``waits`` how each process was kept waiting since the last sample; ``now`` on the run's clock."""
        duration = max(now - self._time, 1e-6)
        quota = self._quota_times()
        for name, pid in self._processes.items():
            self._threads[name] = _threads(pid)
            delay = max((self._delay_of(pid, thread, duration) for thread in self._threads[name]), default=0.0)
            self.waits.append(Wait(name, now, duration, min(delay, duration), min(quota.get(name, 0.0), duration)))
        self._time, self._looks = now, 0
        self._ready.clear()
        seen = {(pid, thread) for name, pid in self._processes.items() for thread in self._threads[name]}
        self._delays = {key: total for key, total in self._delays.items() if key in seen}
        self._files.keep(
            [
                *(path for key in seen for path in _paths_of(*key)),
                *(_group_file(pid) for pid in self._processes.values()),
            ]
        )

    def _delay_of(self, pid: int, thread: int, duration: float) -> float:
        """Seconds that a thread waited for a CPU since the last call; 0 at its first.

        One that was not ready at any look waited no longer than from one to the next.
        """
        total = run_delay_ns(pid, thread, self._files)
        before = self._delays.get((pid, thread), total)
        self._delays[pid, thread] = total
        longest = duration if (pid, thread) in self._ready else duration / (self._looks + 1)
        return min((total - before) / 1e9, longest)

    def _quota_times(self) -> dict[str, float]:
        """Process -> seconds that quotas held it back since the last call."""
        before, self._held = self._held, {}
        found: dict[str, float] = {}
        for name, pid in self._processes.items():
            for group in self._groups_of(pid):
                if group not in self._held:
                    self._held[group] = throttled_s(group)
                found[name] = found.get(name, 0.0) + self._held[group] - before.get(group, self._held[group])
        return found

    def _groups_of(self, pid: int) -> list[Path]:
        """Directories of the control groups that may hold ``pid`` back; workers share theirs."""
        text = self._files.read(_group_file(pid)).decode("utf-8", "replace")
        if text not in self._groups:
            self._groups[text] = list(_groups_in(text))
        return self._groups[text]

    def look(self, now: float) -> None:
        """Note which processes are stopped at ``now``, on the run's clock, and which threads are ready.

        Threads that began after the last sample are not looked at: their waits count from the next one on.
        """
        self._looks += 1
        for name, pid in self._processes.items():
            main = "X"
            for thread in self._threads[name]:
                state = state_of(pid, thread, self._files)
                if state == "R":
                    self._ready.add((pid, thread))
                if thread == pid:
                    main = state
            if main in STOPPED:
                self._stopped.setdefault(name, now)
            elif name in self._stopped:
                self.standstills.append(Standstill(name, self._stopped.pop(name), now, True))

    def finish(self, now: float) -> None:
        """Count those that are still stopped; nothing can be looked at afterwards."""
        self._files.close()
        self.standstills += [Standstill(name, begin, now, True) for name, begin in self._stopped.items()]
        self._stopped.clear()


def run_delay_ns(pid: int, thread: int, files: ProcFiles) -> int:
    """Nanoseconds that a thread was ready and waited for a CPU; 0 if it is gone or the kernel does not count."""
    try:
        return int(files.read(_paths_of(pid, thread)[1]).split()[1])
    except (IndexError, ValueError):
        return 0


def state_of(pid: int, thread: int, files: ProcFiles) -> str:
    """``R`` (it runs or is ready), ``S``, ``T`` ... of a thread, as in its ``stat``; ``X`` if it is gone."""
    text = files.read(_paths_of(pid, thread)[0])
    after = text.rfind(b")") + 2  # the name before it may hold anything
    return chr(text[after]) if 2 <= after < len(text) else "X"


def _group_file(pid: int) -> str:
    return f"{_PROC}/{pid}/cgroup"


@lru_cache(4096)
def _paths_of(pid: int, thread: int) -> tuple[str, str]:
    """What tells the state of a thread and its waits."""
    folder = f"{_PROC}/{pid}/task/{thread}"
    return f"{folder}/stat", f"{folder}/schedstat"


def throttled_s(group: Path) -> float:
    """Seconds that a quota has held the control group in the directory ``group`` back, of either cgroup version."""
    try:
        text = (group / "cpu.stat").read_text()
    except OSError:
        return 0.0
    counts = dict(line.split() for line in text.splitlines() if len(line.split()) == 2)
    if "throttled_usec" in counts:
        return int(counts["throttled_usec"]) / 1e6
    return int(counts.get("throttled_time", 0)) / 1e9


def _threads(pid: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"{_PROC}/{pid}/task")]
    except OSError:
        return []


def _groups_in(text: str) -> Iterator[Path]:
    """Directories of the groups that ``/proc/PID/cgroup`` names, from a process's own to the one below the root."""
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        for root in [_GROUPS / controllers] if controllers else [_GROUPS, _GROUPS / "unified"]:
            group = root / path.lstrip("/")
            while group != root and (group / "cpu.stat").exists():
                yield group
                group = group.parent
